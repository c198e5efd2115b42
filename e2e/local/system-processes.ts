import { readdirSync, readFileSync } from 'node:fs';

/** A process of the operating system that belongs to an installation. */
export interface SystemProcess {
  readonly pid: number;
  readonly command: string;
}

function read(pid: number, what: 'cmdline' | 'environ'): string {
  try {
    return readFileSync(`/proc/${pid}/${what}`, 'utf8');
  } catch {
    // It ended in the meantime.
    return '';
  }
}

/** Every process that has one of `marks` in its command line or environment. Linux only; empty elsewhere. */
export function processesOf(marks: readonly string[]): readonly SystemProcess[] {
  if (process.platform !== 'linux') return [];
  return readdirSync('/proc').flatMap((name) => {
    const pid = Number(name);
    if (!Number.isInteger(pid) || pid === process.pid) return [];
    const command = read(pid, 'cmdline').replaceAll('\0', ' ');
    const text = command + read(pid, 'environ');
    return marks.some((mark) => text.includes(mark)) ? [{ pid, command }] : [];
  });
}
