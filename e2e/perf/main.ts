import { cpus } from 'node:os';
import { chosen, parseBench, sealedFrom, usage } from './options.ts';
import { openTable, type Row } from './report.ts';
import { type Measurement, measurements } from './rows.ts';
import { openStage } from './stage.ts';

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

async function measureAll(wanted: readonly Measurement[]): Promise<void> {
  const write = (text: string): void => void process.stdout.write(text);
  write(`${cpus().length} CPUs, ${cpus()[0]?.model}, Node ${process.version}\n\n`);
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
    const { names, sealed, rows, help } = parseBench(args);
    const all = measurements({ memory: { from: sealedFrom, to: sealed }, rows });
    const wanted = chosen(all, names);
    if (help) process.stdout.write(usage(all));
    else if (process.platform === 'linux') await measureAll(wanted);
    else process.stdout.write('The benchmark reads /proc and runs on Linux only.\n');
  } catch (error) {
    if (!(error instanceof RangeError || error instanceof TypeError)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exitCode = 1;
  }
}

await main(process.argv.slice(2));
