import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { report } from '../../cluster/diagnosis.ts';
import { createSteps, explain } from '../../demo/steps.ts';
import { openTable, type Row, type Table } from '../report.ts';
import { burst } from './burst.ts';
import { coldStart } from './cold-start.ts';
import { idleEdits } from './edits.ts';
import { isSettled, type ObjectFollower } from './follow.ts';
import { imageSizes } from './image-sizes.ts';
import { population, registers, validatorSets } from './population.ts';
import { openStage, release, type Stage } from './stage.ts';
import { steadyState } from './steady.ts';

const usage = `npm run bench-cluster -- [--minutes N]

Installs the chart on the cluster that KUBECONFIG names, in a namespace of its own, measures the operator and takes
everything away again. LOAD="command" imports the archives of dist/images first.

  --minutes N    how long the steady state is watched (default 2)
`;

const images = join(fileURLToPath(import.meta.url), '../../../../dist/images');
const deadlineMs = 240_000;
const write = (text: string): void => void process.stdout.write(text);
const steps = createSteps(write);

const allReady = ({ objects }: ObjectFollower, count: number) =>
  objects.size >= count && [...objects.values()].every(isSettled);

async function populate(stage: Stage): Promise<void> {
  await steps.run(`${population.validatorSets} ValidatorSets`, async () => {
    await stage.make(validatorSets());
    const isReady = () => allReady(stage.validatorSets, population.validatorSets);
    await stage.validatorSets.until('all ValidatorSets are Ready', deadlineMs, isReady);
    return ['Ready: one of four members, the others of one', undefined];
  });
}

async function addRegisters(stage: Stage): Promise<void> {
  await steps.run(`${population.registers} Registers`, async () => {
    await stage.make(registers());
    const isReady = () => allReady(stage.registers, population.registers);
    await stage.registers.until('all Registers are Ready', deadlineMs, isReady);
    return ['Ready: ten of each set', undefined];
  });
}

type Rows = () => Promise<readonly Row[]>;

async function measure(stage: Stage, minutes: number, print: Table['print']): Promise<void> {
  const row = async (title: string, rows: Rows) =>
    print(await steps.run(title, async () => ['done', await rows()]));
  await populate(stage);
  await row(`${population.tenants} Tenants at once`, () => burst(stage));
  await addRegisters(stage);
  await row('edits while nothing else happens', () => idleEdits(stage));
  await row(`the steady state, ${minutes} minutes`, () => steadyState(stage, minutes));
  await row('a cold start of the operator', () => coldStart(stage));
}

/** Runs from installation to removal; a failure prints the state of the installation. */
async function play(minutes: number, print: Table['print']): Promise<void> {
  const stage = await steps.run('install the chart, with one operator', async () => {
    const opened = await openStage();
    return [`namespace ${opened.namespace}`, opened];
  });
  try {
    await measure(stage, minutes, print);
  } catch (error) {
    write(await report(release.namespace));
    throw error;
  } finally {
    await steps.run('delete everything', async () => ['gone', await stage.remove()]);
  }
}

async function bench(minutes: number): Promise<void> {
  const table = openTable(write, ['figure', '']);
  table.print([await imageSizes(images)]);
  await play(minutes, table.print);
  process.exitCode = table.close() ? 0 : 1;
}

async function main(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      minutes: { type: 'string', default: '2' },
      help: { type: 'boolean', default: false, short: 'h' },
    },
  });
  const minutes = Number(values.minutes);
  if (values.help) write(usage);
  else if (minutes > 0) await bench(minutes);
  else throw new RangeError(`--minutes takes a number above 0, not ${values.minutes}`);
}

try {
  await main(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`${explain(error)}\n`);
  process.exitCode = 1;
}
