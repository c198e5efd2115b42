import { startKeycloak } from '../../harness/keycloak.ts';
import { inParallel } from '../../harness/wait.ts';
import { treeCpuSeconds } from '../process-cpu.ts';
import type { Row } from '../report.ts';
import type { Stage } from '../stage.ts';
import { openTenant, password } from '../ways-in/tenant.ts';

/** Folder of an unpacked Keycloak 26.7.0. */
export const keycloakHome = process.env['CHANCERY_TEST_KEYCLOAK'];

const people = 8;
const inFlight = 4;
const grants = 200;
const rounds = 3;
const form = { 'content-type': 'application/x-www-form-urlencoded' };
const emailOf = (n: number) => `grant-${n % people}@bench.example`;

const realm = {
  realm: 'bench',
  enabled: true,
  sslRequired: 'none',
  bruteForceProtected: true,
  clients: [{ clientId: 'bench', publicClient: true, directAccessGrantsEnabled: true }],
  users: Array.from({ length: people }, (_, n) => ({
    username: emailOf(n),
    email: emailOf(n),
    firstName: 'Ada',
    lastName: 'Lovelace',
    enabled: true,
    emailVerified: true,
    credentials: [{ type: 'password', value: password, temporary: false }],
  })),
};

/** argon2id at the product's cost: 19 MiB, two passes, one lane. */
const cost = ['memory=19456', 'iterations=2', 'parallelism=1'].map(
  (setting) => `--spi-password-hashing--argon2--${setting}`,
);

/** Password grants per second beside Keycloak, which has the same cost of a password and everything in memory. */
export async function besideKeycloak(stage: Stage, home: string): Promise<readonly Row[]> {
  const tenant = openTenant(stage);
  await inParallel(Array.from({ length: people }), 2, (_, n) => tenant.accounts.create(emailOf(n), password));
  const keycloak = await startKeycloak({ home, realm, flags: cost });
  const ask = async (url: string, more: Readonly<Record<string, string>>) => {
    const body = new URLSearchParams({ grant_type: 'password', password, ...more });
    const answer = await fetch(url, { method: 'POST', headers: form, body });
    const text = await answer.text();
    if (answer.status !== 200) throw new Error(`${url} answered ${answer.status}: ${text}`);
  };
  const gateway = `${stage.system.state.gatewayUrl}/api/service-auth/token`;
  const theirUrl = `${keycloak.origin}/realms/bench/protocol/openid-connect/token`;
  const ours = contest(
    (n) => ask(gateway, { username: emailOf(n) }),
    () => treeCpuSeconds(stage.launcherPid),
  );
  const theirs = contest(
    (n) => ask(theirUrl, { username: emailOf(n), client_id: 'bench' }),
    () => treeCpuSeconds(keycloak.pid),
  );
  try {
    for (let n = 0; n <= rounds; n++) {
      await ours.round(n > 0);
      await theirs.round(n > 0);
    }
  } finally {
    keycloak.stop();
    await tenant.close();
  }
  return [
    {
      measure: 'Keycloak: password grants per second',
      ours: ours.perSecond,
      raw: theirs.perSecond,
      unit: '/s',
      bound: { kind: 'share', atLeast: 1 },
    },
    {
      measure: 'Keycloak: CPU of all processes for a password grant',
      ours: ours.cpuMillis,
      raw: theirs.cpuMillis,
      unit: 'ms',
      bound: { kind: 'printed' },
    },
  ];
}

function contest(grant: (n: number) => Promise<void>, cpuSeconds: () => number) {
  const figures = { perSecond: [] as number[], cpuMillis: [] as number[] };
  return {
    ...figures,
    round: async (counts: boolean) => {
      const [startedAt, before] = [performance.now(), cpuSeconds()];
      await inParallel(Array.from({ length: grants }), inFlight, (_, n) => grant(n));
      if (!counts) return;
      figures.perSecond.push(grants / ((performance.now() - startedAt) / 1000));
      figures.cpuMillis.push(((cpuSeconds() - before) / grants) * 1000);
    },
  };
}
