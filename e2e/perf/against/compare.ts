import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Row } from '../report.ts';
import { install } from '../stage.ts';
import type { Comparison } from './rows.ts';
import { writeSource } from './source.ts';

/** Measures this source tree beside the other one by turns, and prints each row as soon as it is known. */
export async function compare(
  commit: string,
  wanted: readonly Comparison[],
  print: (rows: readonly Row[]) => void,
): Promise<void> {
  const root = mkdtempSync(join(tmpdir(), 'chancery-bench-against-'));
  const source = join(root, 'source');
  try {
    writeSource(commit, source);
    for (const validators of [1, 4] as const) {
      const staged = wanted.filter((one) => one.validators === validators);
      if (staged.length > 0) await onInstallations({ root, source, validators }, staged, print);
    }
    for (const one of wanted.filter(({ validators }) => validators === 0))
      print(await one.measure(undefined, source));
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

interface Place {
  readonly root: string;
  readonly source: string;
  readonly validators: 1 | 4;
}

/** Starts both installations and measures what shares them. */
async function onInstallations(
  { root, source, validators }: Place,
  wanted: readonly Comparison[],
  print: (rows: readonly Row[]) => void,
): Promise<void> {
  const here = await install(join(root, `here-${validators}`), validators);
  try {
    const there = await install(join(root, `there-${validators}`), validators, source);
    try {
      for (const one of wanted) print(await one.measure([here, there], source));
    } finally {
      await there.close();
    }
  } finally {
    await here.close();
  }
}
