import { cpus } from 'node:os';
import { compare } from './against/compare.ts';
import { comparisons } from './against/rows.ts';
import { commitId } from './against/source.ts';
import { chosen, parseBench, sealedFrom, usage } from './options.ts';
import { openTable, type Row } from './report.ts';
import { type Measurement, measurements } from './rows.ts';
import { openStage } from './stage.ts';
import { few, full } from './workflows/lengths.ts';

type Report = (rows: readonly Row[]) => void;

/** Measurements that share a system, one after the other. */
async function onStage(validators: number, wanted: readonly Measurement[], report: Report): Promise<void> {
  if (wanted.length === 0) return;
  const stage = await openStage(validators);
  try {
    for (const one of wanted) report(await one.measure(stage));
  } finally {
    await stage.close();
  }
}

const write = (text: string): void => void process.stdout.write(text);
const machine = `${cpus().length} CPUs, ${cpus()[0]?.model}, Node ${process.version}`;

/** This source tree beside another commit. */
async function measureAgainst(name: string, names: readonly string[]): Promise<void> {
  const wanted = chosen(comparisons, names);
  const commit = commitId(name);
  write(`${machine}\n\n`);
  const table = openTable(write, [`here against ${commit} (medians)`, 'ratio (spread)']);
  await compare(commit, wanted, table.print);
}

async function measureAll(wanted: readonly Measurement[]): Promise<void> {
  write(`${machine}\n\n`);
  const table = openTable(write, ['ours against raw (medians)', 'ratio (spread)']);
  for (const validators of [1, 4]) {
    await onStage(
      validators,
      wanted.filter((one) => one.validators === validators),
      table.print,
    );
  }
  for (const one of wanted.filter(({ validators }) => validators === 0))
    table.print(await one.measure(undefined));
  process.exitCode = table.close() ? 0 : 1;
}

async function main(args: readonly string[]): Promise<void> {
  try {
    const { names, sealed, rows, short, help, against } = parseBench(args);
    const all = measurements({
      memory: { from: sealedFrom, to: sealed },
      rows,
      workflows: short ? few : full,
    });
    if (help) write(usage(all, comparisons));
    else if (process.platform !== 'linux') write('The benchmark reads /proc and runs on Linux only.\n');
    else if (against !== undefined) await measureAgainst(against, names);
    else await measureAll(chosen(all, names));
  } catch (error) {
    if (!(error instanceof RangeError || error instanceof TypeError)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exitCode = 1;
  }
}

await main(process.argv.slice(2));
