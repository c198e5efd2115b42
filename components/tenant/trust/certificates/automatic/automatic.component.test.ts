import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Party, startTrustTenant, type TrustTenant } from '../../trust.fixture.ts';
import { listCertificates } from '../store.ts';
import { enrolFirstWallets } from './job.ts';
import { requestEnrolment } from './store.ts';

let trust: TrustTenant;
let names = 0;
beforeAll(async () => {
  trust = await startTrustTenant('tenant_first_enrolments');
});
afterAll(() => trust.tenant.stop());

const request = ({ id, wallet }: Pick<Party, 'id' | 'wallet'>) =>
  trust.tenant.db.transact((tx) =>
    requestEnrolment(
      tx,
      { organizationId: id, walletAddress: wallet.address },
      new Date(trust.tenant.clock.nowMs()),
    ),
  );
const run = () =>
  enrolFirstWallets({ ...trust.tenant.deps.trust, log: trust.tenant.runtime.log }).run(
    new AbortController().signal,
  );
const certificatesOf = (id: string) => listCertificates(trust.tenant.db.read, id, 10);
const waiting = async () =>
  (await trust.tenant.db.read.selectFrom('requested_enrolments').selectAll().execute()).length;
const party = () => {
  names += 1;
  return trust.makeParty(`Party ${names}`, `party-${names}`);
};

describe('the first wallet of an organisation', () => {
  it('is enrolled once, by the service itself', async () => {
    const made = await party();
    await request(made);
    await request(made);
    await Promise.all([run(), run()]);
    const certificates = await certificatesOf(made.id);
    expect(certificates.map(({ provenance, status }) => [provenance, status])).toEqual([
      ['Internal', 'Active'],
    ]);
    expect(await waiting()).toBe(0);
    const { body } = await trust.call('GET', `/api/organizations/${made.id}/audit?pageSize=200`, {
      token: made.token,
    });
    const entry = body.events.find(
      ({ eventType }: { eventType: string }) => eventType === 'CertificateEnrolled',
    );
    expect(entry).toMatchObject({ success: true, identityId: null });
    // A later wallet, or the same event again, is for Administrators.
    await request(made);
    expect(await waiting()).toBe(0);
  });

  it('is left to its Administrators where they were faster, and where there is no organisation', async () => {
    const made = await party();
    await request(made);
    const enrolled = await trust.call('POST', `${made.path}/enrol`, { token: made.token, body: {} });
    expect(enrolled.status).toBe(200);
    await run();
    expect(await certificatesOf(made.id)).toHaveLength(1);
    await request({ id: randomUUID(), wallet: made.wallet });
    expect(await waiting()).toBe(0);
  });

  it.each(['ineligible', 'locked', 'replaced'] as const)(
    'that is %s gets none, and is not tried again',
    async (state) => {
      const made = await party();
      await request(made);
      made.wallet.state = state;
      await run();
      expect([await certificatesOf(made.id), await waiting()]).toEqual([[], 0]);
    },
  );

  it('is tried again while the wallet service is away, for about an hour', async () => {
    const [later, never] = [await party(), await party()];
    await request(later);
    trust.keys.isDown = true;
    await run();
    await run();
    trust.keys.isDown = false;
    expect([await certificatesOf(later.id), await waiting()]).toEqual([[], 1]);
    trust.tenant.clock.advance(4_000);
    await run();
    expect(await certificatesOf(later.id)).toHaveLength(1);
    await request(never);
    trust.keys.isDown = true;
    const beganAtMs = trust.tenant.clock.nowMs();
    while ((await waiting()) > 0) {
      await run();
      trust.tenant.clock.advance(60_000);
    }
    trust.keys.isDown = false;
    expect((trust.tenant.clock.nowMs() - beganAtMs) / 60_000).toBeGreaterThan(55);
    expect((trust.tenant.clock.nowMs() - beganAtMs) / 60_000).toBeLessThan(90);
  });
});
