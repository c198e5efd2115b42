import { charts, install, installKinds } from '../chart.ts';
import { report } from '../diagnosis.ts';
import { namespace, release } from '../installed.ts';
import { apply, kubectl, run } from '../kubectl.ts';
import { pinnedTo, planNodes, validatorSet } from './placement.ts';

/** Installs once per run: services on one node, a validator on each of the four others. */
export async function setup(): Promise<void> {
  const startedAt = performance.now();
  const { services } = await planNodes();
  await installKinds();
  await install({ ...release, set: pinnedTo(services) }, 150_000);
  await apply(namespace, validatorSet(services));
  for (const sample of ['tenant', 'register'])
    await kubectl('apply', '-n', namespace, '-f', charts('chancery', 'samples', `${sample}.yaml`));
  const resources = ['tenant/acme', 'validatorset/main', 'register/invoices'];
  const wait = ['wait', '-n', namespace, '--for=condition=Ready', '--timeout=150s', ...resources];
  const { code, err } = await run('kubectl', wait, { timeoutMs: 160_000 });
  if (code !== 0) throw new Error(`${err}${await report(namespace)}`);
  process.stdout.write(
    `installed on five nodes after ${Math.round((performance.now() - startedAt) / 1000)} s\n`,
  );
}
