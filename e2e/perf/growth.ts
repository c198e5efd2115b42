import { type Cost, type Dockets, openSubjects, type Subjects } from './growth-subjects.ts';
import type { Row } from './report.ts';

/** What everything is compared with. */
const reference = { name: 'reference', size: 100_000 };
const grown = 'grown';
const smallest = 1_000;
const rounds = 3;
const dockets: Dockets = { count: 8, transactions: 500 };
const groups = 7;
const inGroup = 4;

/** What a read may cost of what it costs at the reference (notes/performance.md 5). */
const bounds: Readonly<Partial<Record<string, number>>> = {
  'get by id': 1.5,
  'page=N, half-way down': 1.5,
  '$skip as far as it goes': 1.5,
};
const boundOfLists = 1.3;

/** Sizes at which a register is looked at, smallest first. */
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

/** Measures the grown register and the reference by turns, so that the machine's drift meets both. */
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

async function appends(subjects: Subjects, size: number): Promise<readonly Row[]> {
  const costs = await byTurns(rounds, (subject) => subjects.append(subject, dockets));
  const name = `append, ${sizeName(size)} against ${sizeName(reference.size)}`;
  const whole = pick(costs, ({ service, database }) => service + database);
  return [
    rowOf(`${name}: CPU of register and database`, whole, 'us', 1.25),
    rowOf(
      `${name}: CPU of the database`,
      pick(costs, ({ database }) => database),
      'us',
      undefined,
    ),
  ];
}

/** The smallest of every so many figures: what else ran on the machine only ever adds. */
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
    rows.push(rowOf(title, took, 'ms', bounds[name] ?? boundOfLists));
  }
  return rows;
}

/** The same transactions in dockets of one register, and of so many by turns. */
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
 * What a register costs as it grows, by decades up to `most` transactions, beside a register of 10^5 in the same run.
 * History is made up in the database; what is measured takes the way of all dockets and requests.
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
