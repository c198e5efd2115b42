import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

const ticksPerSecond = Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }));

function ticks(pid: number, places: readonly number[]): number {
  const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
  // The name in parentheses may contain spaces; the numbers begin after it.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return places.reduce((sum, place) => sum + Number(fields[place]), 0);
}

/** CPU seconds (user and system) that a process has used; Linux only. */
export function cpuSeconds(pid: number): number {
  return ticks(pid, [11, 12]) / ticksPerSecond;
}

/** The same for a process and all its descendants, including ended children. */
export function treeCpuSeconds(pid: number): number {
  let sum = 0;
  for (const each of processTree(pid)) {
    try {
      sum += ticks(each, [11, 12, 13, 14]);
    } catch {
      // It ended in the meantime: its parent counts it from now on.
    }
  }
  return sum / ticksPerSecond;
}

/** Proportional set size of a process in MiB. */
export function memoryMiB(pid: number): number {
  const text = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8');
  return Number(/^Pss:\s+(\d+) kB$/m.exec(text)?.[1] ?? 0) / 1024;
}

/** A process and all its descendants. */
export function processTree(pid: number): readonly number[] {
  const children = childrenOf(pid);
  const below = children === '' ? [] : children.split(' ').flatMap((child) => processTree(Number(child)));
  return [pid, ...below];
}

function childrenOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
  } catch {
    return '';
  }
}
