import { type Cost, type Dockets, openSubjects, type Subjects } from './growth-subjects.ts';
import type { Row } from './report.ts';

/** The size that everything is compared with. */
const reference = { name: 'reference', size: 100_000 };
const grown = 'grown';
const smallest = 1_000;
const rounds = 3;
const dockets: Dockets = { count: 8, transactions: 500 };
const groups = 7;
const inGroup = 4;

/** Maximum cost of a read relative to its cost at the reference. */
const bounds: Readonly<Partial<Record<string, number>>> = {
  'get by id': 1.5,
  // Four keys each.
  'lookup of 1,000 submissions': 1.5,
  'page=N, half-way down': 1.5,
  '$skip as far as it goes': 1.5,
};
const boundOfLists = 1.3;
/**
 * A row of long ago costs a read of a page that is not in memory: it is printed without a bound, because it depends on
 * the machine.
 */
const printed: readonly string[] = ['lookup of 1,000 that follow anything'];

/** Sizes at which a register is measured, smallest first. */
function decades(most: number): readonly number[] {
  const sizes: number[] = [];
  for (let size = smallest; size <= most; size *= 10) sizes.push(size);
  return sizes;
}

const sizeName = (size: number) => `10^${Math.round(Math.log10(size))}`;

interface Pair<T> {
  readonly ours: T[];
  readonly raw: T[];
}

/** Measures the grown register and the reference alternately, so that a drift of the machine's speed affects both. */
async function byTurns<T>(count: number, measure: (subject: string) => Promise<T>): Promise<Pair<T>> {
  const pair: Pair<T> = { ours: [], raw: [] };
  for (let n = 0; n < count; n += 1) {
    pair.raw.push(await measure(reference.name));
    pair.ours.push(await measure(grown));
  }
  return pair;
}

function rowOf(measure: string, { ours, raw }: Pair<number>, unit: string, atMost: number | undefined): Row {
  return {
    measure,
    ours,
    raw,
    unit,
    bound: atMost === undefined ? { kind: 'printed' } : { kind: 'multiple', atMost },
  };
}

const pick = ({ ours, raw }: Pair<Cost>, of: (cost: Cost) => number): Pair<number> => ({
  ours: ours.map(of),
  raw: raw.map(of),
});

const whole = ({ service, database }: Cost): number => service + database;

async function appends(subjects: Subjects, size: number): Promise<readonly Row[]> {
  const costs = await byTurns(rounds, (subject) => subjects.append(subject, dockets));
  const sizes = `${sizeName(size)} against ${sizeName(reference.size)}`;
  const ofDatabase = pick(costs, ({ database }) => database);
  // Compared with its own size, the row shows the noise of the machine.
  const atMost = size === reference.size ? undefined : 1.25;
  const rows = [
    rowOf(`append, ${sizes}: CPU of register and database`, pick(costs, whole), 'us', atMost),
    rowOf(`append, ${sizes}: CPU of the database`, ofDatabase, 'us', undefined),
  ];
  if (size <= reference.size) return rows;
  const far = await byTurns(rounds, (subject) => subjects.append(subject, { ...dockets, anywhere: true }));
  const title = `append behind anything, ${sizes}: CPU of register and database`;
  return [...rows, rowOf(title, pick(far, whole), 'us', undefined)];
}

/** The smallest of each group of figures: other load of the machine only ever adds. */
function smallestOf(figures: readonly number[], each: number): number[] {
  return Array.from({ length: Math.floor(figures.length / each) }, (_, n) =>
    Math.min(...figures.slice(n * each, (n + 1) * each)),
  );
}

async function reads(subjects: Subjects, size: number): Promise<readonly Row[]> {
  const rows: Row[] = [];
  for (const name of await subjects.reads()) {
    await subjects.read([reference.name, grown], name, 1);
    const [raw = [], ours = []] = await subjects.read([reference.name, grown], name, groups * inGroup);
    const took = { ours: smallestOf(ours, inGroup), raw: smallestOf(raw, inGroup) };
    const title = `${name}, ${sizeName(size)} against ${sizeName(reference.size)}`;
    const bound = printed.includes(name) ? undefined : (bounds[name] ?? boundOfLists);
    rows.push(rowOf(title, took, 'ms', bound));
  }
  return rows;
}

/** The same transactions in dockets of one register, and spread over many. */
async function registers(subjects: Subjects): Promise<Row> {
  const few: Dockets = { count: 125, transactions: 8 };
  const costs: Pair<number> = { ours: [], raw: [] };
  await subjects.open('registers');
  for (let n = 0; n < 1_000 / few.count; n += 1) {
    const one = await subjects.spread('registers', 1, few);
    const many = await subjects.spread('registers', 1_000, few);
    costs.raw.push(one.service + one.database);
    costs.ours.push(many.service + many.database);
  }
  return rowOf('1,000 registers against one: CPU of register and database', costs, 'us', 1.2);
}

/**
 * Cost of a register as it grows, by decades up to `most` transactions, beside a register of 10^5 in the same run.
 * History is generated in the database; what is measured passes through the service like all dockets and requests.
 */
export async function growth(most: number, tell: (text: string) => void): Promise<readonly Row[]> {
  const subjects = await openSubjects();
  try {
    for (const [name, size] of [
      [reference.name, reference.size],
      [grown, smallest],
    ] as const) {
      await subjects.open(name);
      await subjects.growTo(name, size, (made) => tell(`${name}: ${made} transactions`));
    }
    const rows: Row[] = [];
    for (const size of decades(most)) {
      await subjects.growTo(grown, size, (made) => tell(`${grown}: ${made} transactions`));
      tell(`measuring at ${sizeName(size)}`);
      rows.push(...(await appends(subjects, size)));
      if (size > reference.size || size === most) rows.push(...(await reads(subjects, size)));
    }
    tell('measuring 1,000 registers');
    return [...rows, await registers(subjects)];
  } finally {
    await subjects.close();
  }
}
