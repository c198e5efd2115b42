/** Sum of a counter, or of a histogram's observations, over all of its labels, as `/metrics` of a process says. */
export function sumOf(text: string, names: RegExp): number {
  let sum = 0;
  for (const line of text.split('\n')) {
    const found = /^(\w+)(?:\{[^}]*\})? ([0-9.e+-]+)$/.exec(line);
    if (found !== null && names.test(found[1] ?? '')) sum += Number(found[2]);
  }
  return sum;
}

/** The metrics of a process at its operations listener. */
export async function readMetrics(opsUrl: string): Promise<string> {
  return (await fetch(`${opsUrl}/metrics`)).text();
}
