/** One measured row: the product's figure beside the raw program's of the same run. */
export interface Row {
  readonly measure: string;
  /** Figures of the rounds, in pairs of product and raw program; raw is empty where a row has none. */
  readonly ours: readonly number[];
  readonly raw: readonly number[];
  readonly unit: string;
  readonly bound: Bound;
}

/**
 * The bound of a row: at least a share of raw, at most a multiple of raw, at most an absolute figure, at most an
 * absolute figure in every round, or none.
 */
export type Bound =
  | { readonly kind: 'share'; readonly atLeast: number }
  | { readonly kind: 'multiple'; readonly atMost: number }
  | { readonly kind: 'absolute'; readonly atMost: number }
  | { readonly kind: 'worst'; readonly atMost: number }
  | { readonly kind: 'printed' };

export interface Judged {
  readonly line: string;
  readonly holds: boolean;
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const [low, high] = [sorted[middle - 1] ?? 0, sorted[middle] ?? 0];
  return sorted.length % 2 === 1 ? high : (low + high) / 2;
}

function ratios(row: Row): readonly number[] {
  return row.ours.map((value, round) => value / (row.raw[round] ?? Number.NaN));
}

function figure(value: number): string {
  if (Number.isInteger(value)) return String(value);
  return Math.abs(value) >= 100 ? value.toFixed(0) : value.toPrecision(3);
}

/** Judges by the median of the pairs' ratios, because the machine's speed drifts between rounds. */
export function judge(row: Row): Judged {
  const { bound } = row;
  return bound.kind === 'share' || bound.kind === 'multiple'
    ? judgePairs(row, bound)
    : judgeAlone(row, bound);
}

type Paired = Extract<Bound, { kind: 'share' | 'multiple' }>;

function judgePairs(row: Row, bound: Paired): Judged {
  const pairs = ratios(row);
  const ratio = median(pairs);
  const holds = bound.kind === 'share' ? ratio >= bound.atLeast : ratio <= bound.atMost;
  const wanted =
    bound.kind === 'share' ? `at least ${bound.atLeast.toFixed(2)}` : `at most ${bound.atMost.toFixed(2)}`;
  const figures = `${figure(median(row.ours))} against ${figure(median(row.raw))} ${row.unit}`;
  return { holds, line: judged([row.measure, figures, ratioText(pairs), wanted], holds) };
}

function judgeAlone(row: Row, bound: Exclude<Bound, Paired>): Judged {
  const ours = bound.kind === 'worst' ? Math.max(...row.ours) : median(row.ours);
  const holds = bound.kind === 'printed' || (row.ours.length > 0 && ours <= bound.atMost);
  const wanted = bound.kind === 'printed' ? 'printed' : `at most ${bound.atMost} ${row.unit}`;
  const beside = row.raw.length === 0 ? '' : ` against ${figure(median(row.raw))}`;
  const ratio = row.raw.length === 0 ? '' : ratioText(ratios(row));
  return {
    holds,
    line: judged([row.measure, `${figure(ours)}${beside} ${row.unit}`, ratio, wanted], holds),
  };
}

function ratioText(pairs: readonly number[]): string {
  return `${median(pairs).toFixed(2)} (${Math.min(...pairs).toFixed(2)} to ${Math.max(...pairs).toFixed(2)})`;
}

type Texts = readonly [measure: string, figures: string, ratio: string, wanted: string];

function columns(texts: Texts): string {
  const widths = [60, 34, 22, 20];
  return texts.map((text, column) => text.padEnd(widths[column] ?? 0)).join(' ');
}

function judged(texts: Texts, holds: boolean): string {
  return `${columns(texts)} ${holds ? 'ok' : 'MISSED'}`;
}

/** The smallest figure that this share of all figures does not exceed: 0.5 for the p50. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN;
}

/** A table that is printed row by row. */
export interface Table {
  readonly print: (rows: readonly Row[]) => void;
  /** Ends the table; returns whether all bounds hold. */
  readonly close: () => boolean;
}

/** Begins a table; the names of the figure columns differ. */
export function openTable(
  write: (text: string) => void,
  [figures, ratio]: readonly [figures: string, ratio: string],
): Table {
  let missed = 0;
  write(`${columns(['measure', figures, ratio, 'bound']).trimEnd()}\n`);
  return {
    print: (rows) => {
      for (const { line, holds } of rows.map(judge)) {
        write(`${line}\n`);
        missed += holds ? 0 : 1;
      }
    },
    close: () => {
      write(missed === 0 ? '\nall bounds hold\n' : `\n${missed} bounds missed\n`);
      return missed === 0;
    },
  };
}
