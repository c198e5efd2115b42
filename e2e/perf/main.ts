import { cpus } from 'node:os';
import { chosen, parseBench, sealedFrom, usage } from './options.ts';
import { heading, judge, type Row } from './report.ts';
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
  process.stdout.write(`${cpus().length} CPUs, ${cpus()[0]?.model}, Node ${process.version}\n\n${heading}\n`);
  let missed = 0;
  const report: Report = (rows) => {
    for (const { line, holds } of rows.map(judge)) {
      process.stdout.write(`${line}\n`);
      missed += holds ? 0 : 1;
    }
  };
  for (const validators of [1, 4]) {
    await onStage(
      validators,
      wanted.filter((one) => one.validators === validators),
      report,
    );
  }
  for (const one of wanted.filter(({ validators }) => validators === 0)) report(await one.measure(undefined));
  process.stdout.write(missed === 0 ? '\nall bounds hold\n' : `\n${missed} bounds missed\n`);
  process.exitCode = missed === 0 ? 0 : 1;
}

async function main(args: readonly string[]): Promise<void> {
  try {
    const { names, sealed, help } = parseBench(args);
    const all = measurements({ from: sealedFrom, to: sealed });
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
