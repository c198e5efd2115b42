import { parseArgs } from 'node:util';

/** Options of `npm run bench --`. */
export interface BenchOptions {
  /** Measurements by name; all when none is named. */
  readonly names: readonly string[];
  /** Number of transactions that the memory row seals. */
  readonly sealed: number;
  /** Final number of transactions in the register of the growth rows. */
  readonly rows: number;
  /** The rows of workflows in a short form, which shows that they work. */
  readonly short: boolean;
  readonly help: boolean;
  /** The commit to measure beside this source tree, instead of raw programs. */
  readonly against: string | undefined;
}

/** A measurement that can be selected by name. */
interface Named {
  readonly name: string;
  readonly what: string;
}

/** A validator's caches of the latest transactions are full by then. */
export const sealedFrom = 25_000;

/** Sizes up to which a register may be grown. */
const decades: readonly number[] = [1e3, 1e4, 1e5, 1e6, 1e7];

/** Throws RangeError or the parser's TypeError for an unknown option. */
export function parseBench(args: readonly string[]): BenchOptions {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      sealed: { type: 'string', default: '60000' },
      rows: { type: 'string', default: '1000000' },
      short: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false, short: 'h' },
    },
  });
  const sealed = Number(values.sealed);
  if (!Number.isSafeInteger(sealed) || sealed <= sealedFrom)
    throw new RangeError(`--sealed takes a number above ${sealedFrom}, not ${values.sealed}`);
  const rows = Number(values.rows);
  if (!decades.includes(rows))
    throw new RangeError(`--rows takes one of ${decades.join(', ')}, not ${values.rows}`);
  const isComparison = positionals[0] === 'against';
  if (isComparison && positionals[1] === undefined && !values.help)
    throw new RangeError('against takes the commit to measure beside this source tree');
  return {
    names: isComparison ? positionals.slice(2) : positionals,
    sealed,
    rows,
    short: values.short,
    help: values.help,
    against: isComparison ? positionals[1] : undefined,
  };
}

/** The named measurements, in their own order. */
export function chosen<T extends Named>(all: readonly T[], names: readonly string[]): readonly T[] {
  const unknown = names.find((name) => all.every((one) => one.name !== name));
  if (unknown !== undefined) throw new RangeError(`there is no measurement ${unknown}; --help lists them`);
  return names.length === 0 ? all : all.filter((one) => names.includes(one.name));
}

export function usage(all: readonly Named[], comparisons: readonly Named[]): string {
  const lines = (named: readonly Named[]): string =>
    named.map(({ name, what }) => `  ${name.padEnd(18)} ${what}`).join('\n');
  return `npm run bench -- [MEASUREMENT...] [--sealed N] [--rows N] [--short]
npm run bench -- against COMMIT [MEASUREMENT...]

Measures what is named, or everything, beside raw programs:

${lines(all)}

or this source tree beside a checkout of another commit, by turns:

${lines(comparisons)}

  --sealed N     how many transactions the memory row seals (default 60000)
  --rows N       how far the register of the growth rows is grown, 1000 to 10000000 by decades (default 1000000)
  --short        rows of workflows with a few instances and one round: shows that they work, not what they cost
`;
}
