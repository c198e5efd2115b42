import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Api, createApi } from '../harness/api.ts';
import { createIssuingOrganization, type IssuingOrganization } from '../harness/issuing-organization.ts';
import { signIn } from '../harness/journey.ts';
import { type HeldCredential, Openid4vcWallet } from '../harness/openid4vc-wallet.ts';
import { present } from '../harness/openid4vp-wallet.ts';
import { presentationRequests } from '../harness/presentation-requests.ts';
import { createRawWallet, readOffer } from '../harness/raw-wallet.ts';
import {
  GATEWAY_PORTS,
  type OwnProcess,
  SERVICE_PORTS,
  startOf,
  startOnFreePorts,
} from '../harness/running-process.ts';
import { type LocalSystem, startSystem } from '../harness/system.ts';
import { until } from '../harness/wait.ts';
import { type GivenParts, startGivenParts } from './given-parts.ts';
import { type HeldCommits, type HeldSide, startHeldCommits } from './held-commits.ts';

const recoveryMs = 60_000;
/** Statuses of a call whose service has gone, 0 without an answer. */
const lost = [0, 502, 503, 504];

describe.runIf(process.platform === 'linux')('credentials while services fail', () => {
  let dataDir = '';
  let parts: GivenParts;
  let system: LocalSystem;
  let commits: HeldCommits;
  let api: Api;
  /** Through the credential service that is killed. */
  let doomed: Api;
  let gateway: OwnProcess | undefined;
  let victim: OwnProcess | undefined;
  let organization: IssuingOrganization;
  let held: HeldCredential;
  const pidOf = (name: string) => {
    const pid = system.current().processes.find((one) => one.name === name)?.pid;
    if (pid === undefined) throw new Error(`no process ${name}`);
    return pid;
  };

  beforeAll(async () => {
    dataDir = mkdtempSync(join(tmpdir(), 'chancery-credential-kills-'));
    parts = await startGivenParts();
    system = await startSystem({ dataDir, args: ['--processes'], env: parts.env, deadlineMs: 90_000 });
    api = createApi(system.state.gatewayUrl);
    const { access_token: token } = await signIn(api, system.state);
    organization = await createIssuingOrganization({ api, token: () => token, state: system.state });
    const [one] = await new Openid4vcWallet().take((await organization.offer()).credentialOfferUri);
    if (one === undefined) throw new Error('the wallet got no credential');
    held = one;
    commits = await startHeldCommits(startOf(pidOf('credential')).env['DATABASE_URL'] ?? '');
  }, 300_000);
  afterAll(async () => {
    await gateway?.kill();
    await victim?.kill();
    await commits?.close();
    await system?.stop();
    await parts?.remove();
    rmSync(dataDir, { recursive: true, force: true });
  });

  const wallet = createRawWallet(() => api);
  const doomedWallet = createRawWallet(() => doomed);
  const caller = (through: () => Api) => () => ({
    api: through(),
    token: organization.administrator.token,
  });
  const requests = presentationRequests(caller(() => api));
  const doomedRequests = presentationRequests(caller(() => doomed));

  describe.each([
    ['the database never got the commit', 'before'],
    ['the answer is lost', 'after'],
  ] as const)('a credential service is killed and %s', (_, side: HeldSide) => {
    beforeEach(async () => {
      const databaseUrl = { DATABASE_URL: commits.url };
      const started = await startOnFreePorts(startOf(pidOf('credential')), SERVICE_PORTS, () => databaseUrl);
      victim = started;
      const { ports, ...front } = await startOnFreePorts(startOf(pidOf('gateway')), GATEWAY_PORTS, () => ({
        CHANCERY_CREDENTIAL_HTTPS: `127.0.0.1:${started.ports['CHANCERY_HTTPS_PORT']}`,
      }));
      gateway = front;
      doomed = createApi(`http://127.0.0.1:${ports['CHANCERY_GATEWAY_PORT']}`);
      return async () => {
        await gateway?.kill();
        await victim?.kill();
      };
    }, 120_000);

    /** Sends a request, and kills the service while the commit of its effect is held. */
    async function kill(send: Promise<{ readonly status: number }>, held: Promise<void>): Promise<void> {
      const answer = send.then(
        ({ status }) => status,
        () => 0,
      );
      await held;
      await victim?.kill();
      expect(lost).toContain(await answer);
    }
    const rest = side === 'before' ? [200, 400] : [400, 400];

    test('a code is redeemed once', async () => {
      const { code } = readOffer((await organization.offer()).credentialOfferUri);
      const reached = commits.hold('insert into "access_tokens"', side);
      await kill(doomedWallet.redeem(code), reached);
      const again = [await wallet.redeem(code), await wallet.redeem(code)];
      expect(again.map(({ status }) => status)).toEqual(rest);
    });

    test('a nonce and a token give one credential', async () => {
      const offer = await wallet.accept(organization);
      const proofs = [await wallet.proof(offer.issuer)];
      const reached = commits.hold('insert into "credentials"', side);
      await kill(doomedWallet.credential(offer, proofs), reached);
      expect(await organization.credentialIds(offer.offerId)).toHaveLength(side === 'before' ? 0 : 1);
      const again = [await wallet.credential(offer, proofs), await wallet.credential(offer, proofs)];
      expect(again.map(({ status }) => status)).toEqual(rest);
      expect(await organization.credentialIds(offer.offerId)).toHaveLength(1);
    });

    test('a request is answered once, and has one verdict', async () => {
      const to = await requests.ask();
      const presentation = await present(to.request, held, ['permitNumber']);
      const reached = commits.hold('update "presentation_requests"', side);
      await kill(doomedRequests.answer(to, presentation), reached);
      const again = [await requests.answer(to, presentation), await requests.answer(to, presentation)];
      expect(again.map(({ status }) => status)).toEqual(side === 'before' ? [200, 409] : [409, 409]);
      expect((await requests.resultOf(to)).state).toBe('Verified');
    });
  });

  /** Sends the same request until it has its effect; whatever came before refused nothing for good. */
  const repeated = (send: () => Promise<{ readonly status: number }>) =>
    until('the same request is served', recoveryMs, async () => {
      const status = await send().then(
        (answer) => answer.status,
        () => 0,
      );
      expect([...lost, 200]).toContain(status);
      return status === 200 ? true : undefined;
    });

  test.each(['wallet', 'tenant'])('the %s service does not answer, and then does', async (name) => {
    const offer = await wallet.accept(organization);
    const proofs = [await wallet.proof(offer.issuer)];
    const pid = pidOf(name);
    process.kill(pid, 'SIGSTOP');
    try {
      const { status, body } = await wallet.credential(offer, proofs);
      expect([status, body]).toMatchObject([503, { error: 'temporarily_unavailable' }]);
    } finally {
      process.kill(pid, 'SIGCONT');
    }
    await repeated(() => wallet.credential(offer, proofs));
    expect((await wallet.credential(offer, proofs)).status).toBe(400);
    expect(await organization.credentialIds(offer.offerId)).toHaveLength(1);
  });

  test('the database crashes and comes back', async () => {
    const offer = await wallet.accept(organization);
    const proofs = [await wallet.proof(offer.issuer)];
    const to = await requests.ask();
    const presentation = await present(to.request, held, ['permitNumber']);
    await parts.crashDatabase();
    expect(lost).toContain((await wallet.credential(offer, proofs)).status);
    expect(lost).toContain((await requests.answer(to, presentation)).status);
    await parts.startDatabase();
    await repeated(() => wallet.credential(offer, proofs));
    await repeated(() => requests.answer(to, presentation));
    expect(await organization.credentialIds(offer.offerId)).toHaveLength(1);
    expect((await requests.resultOf(to)).state).toBe('Verified');
  });
});
