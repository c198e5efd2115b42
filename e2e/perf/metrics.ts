/** Sum of a counter, or of a histogram's observations, over all of its labels, from `/metrics` of a process. */
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

/** One line of a metric. */
export interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** Every line of the metric of this name. */
export function samplesOf(text: string, name: string): readonly Sample[] {
  return text
    .split('\n')
    .filter((line) => line.startsWith(name) && ['{', ' '].includes(line[name.length] ?? ''))
    .map((line) => {
      const end = line.lastIndexOf(' ');
      const pairs = line.slice(name.length, end).matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g);
      const labels = Object.fromEntries([...pairs].map(([, label, value]) => [label, value]));
      return { labels, value: Number(line.slice(end + 1)) };
    });
}
