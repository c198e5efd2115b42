import { z } from 'zod';

const health = z.object({
  status: z.enum(['Healthy', 'Degraded', 'Unhealthy']),
  checks: z.array(z.object({ name: z.string(), status: z.string(), error: z.string().optional() })),
});

/** Status code and body of `/health` on the operations port of a process. */
export async function healthOf(ops: string): Promise<z.output<typeof health> & { readonly code: number }> {
  const answer = await fetch(`http://${ops}/health`);
  return { code: answer.status, ...health.parse(await answer.json()) };
}

/** Value of a metric of a process: the sum over its labels, 0 when it has no sample. */
export async function metricOf(ops: string, name: string, labels = ''): Promise<number> {
  const text = await (await fetch(`http://${ops}/metrics`)).text();
  const lines = text.split('\n').filter((line) => line.startsWith(`${name} `) || line.startsWith(`${name}{`));
  return lines
    .filter((line) => line.includes(labels))
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
}
