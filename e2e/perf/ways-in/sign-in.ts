import { z } from 'zod';
import type { App } from '../../harness/account.ts';
import { codeAt } from '../../harness/authenticator-app.ts';
import { inParallel, until } from '../../harness/wait.ts';
import { cpuSeconds } from '../process-cpu.ts';
import { type RawProgram, startRaw } from '../raw/child.ts';
import type { Row } from '../report.ts';
import type { Stage } from '../stage.ts';
import type { Lengths } from '../workflows/lengths.ts';
import { openTenant, password, perCpuSecond, type Tenant } from './tenant.ts';

/** Each round with codes takes half a minute, because a code is used once. */
const mostCodeRounds = 3;
const plainPeople = 10;
/** As many as the raw program has at a time. */
const inFlight = 2;
const secondStep = z.object({ login_token: z.string() });

/** A person with an authenticator app, and the last step whose code is used up. */
interface Person {
  readonly email: string;
  readonly app: App;
}

/** Sign-ins by password, and by password and code of an app, per CPU second of the tenant process. */
export async function signingIn(stage: Stage, lengths: Lengths): Promise<readonly Row[]> {
  const tenant = openTenant(stage);
  const plain = Array.from({ length: plainPeople }, (_, n) => `plain-${n}@bench.example`);
  for (const email of plain) await tenant.accounts.create(email, password);
  const people = await enrol(tenant, lengths.people);
  const login = (email: string) => tenant.post('/api/auth/login', { email, password });
  const commits = await tenant.commitsOf(10, () => login(plain[0] ?? ''));
  const { rounds, warmUp } = lengths;
  const passwords = await against(tenant, stage, {
    commits,
    rounds,
    warmUp,
    all: Array.from({ length: lengths.signIns }, (_, n) => plain[n % plainPeople] ?? ''),
    act: login,
  });
  const steps = createSteps();
  const codes = await against(tenant, stage, {
    // the second request has as many as the first
    commits: 2 * commits,
    rounds: Math.min(rounds, mostCodeRounds),
    warmUp: 0,
    all: people,
    prepare: () => steps.next(),
    act: async ({ email, app }: Person) => {
      const { login_token } = secondStep.parse(await login(email));
      await tenant.post('/api/auth/verify-2fa', { login_token, code: codeAt(app.secret, steps.seconds()) });
    },
  });
  await tenant.close();
  const row = (measure: string, figures: Pick<Row, 'ours' | 'raw'>, atLeast: number): Row => ({
    measure,
    ...figures,
    unit: '/s',
    bound: { kind: 'share', atLeast },
  });
  return [
    row('sign-ins by password, per CPU second', passwords, 0.9),
    row('sign-ins by password and code of an app, per CPU second', codes, 0.85),
  ];
}

async function enrol(tenant: Tenant, count: number): Promise<readonly Person[]> {
  const made: Person[] = [];
  await inParallel(
    Array.from({ length: count }, (_, n) => `app-${n}@bench.example`),
    4,
    async (email) => {
      await tenant.accounts.create(email, password);
      const { access_token: token } = await tenant.accounts.signIn(email, password);
      made.push({ email, app: await tenant.accounts.addApp(token) });
    },
  );
  return made;
}

/** Codes are used once, so each round takes those of a later step. */
function createSteps() {
  let step = Math.floor(Date.now() / 30_000);
  return {
    next: async () => {
      step += 1;
      // the service takes the code of the next step, too
      await until('the next code', 60_000, async () => (Date.now() / 30_000 > step - 1 ? true : undefined));
    },
    seconds: () => step * 30,
  };
}

interface Contest<T> {
  readonly commits: number;
  readonly rounds: number;
  readonly warmUp: number;
  readonly all: readonly T[];
  readonly prepare?: () => Promise<void>;
  readonly act: (one: T) => Promise<unknown>;
}

async function against<T>(
  tenant: Tenant,
  stage: Stage,
  contest: Contest<T>,
): Promise<Pick<Row, 'ours' | 'raw'>> {
  const { all, act, commits, prepare, rounds, warmUp } = contest;
  const raw = await startRaw(new URL('../raw/proofs.ts', import.meta.url), {
    ...stage.svid,
    databaseUrl: stage.rawDatabaseUrl,
    schema: 'sign_ins',
    commits,
  });
  const figures = { ours: [] as number[], raw: [] as number[] };
  for (let n = 0; n < warmUp + rounds; n++) {
    await prepare?.();
    const ours = await perCpuSecond(tenant.pid, all, inFlight, act);
    const bare = await rawPerCpuSecond(raw, all.length);
    if (n < warmUp) continue;
    figures.ours.push(ours);
    figures.raw.push(bare);
  }
  await raw.stop();
  return figures;
}

async function rawPerCpuSecond(raw: RawProgram, count: number): Promise<number> {
  const before = cpuSeconds(raw.pid);
  await raw.tell(String(count));
  return count / (cpuSeconds(raw.pid) - before);
}
