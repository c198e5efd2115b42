import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { generalDecrypt } from 'jose';
import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { createOrganization, createPerson, type Person } from '../harness/governance.ts';
import { createRegister, waitOnline } from '../harness/journey.ts';
import { createOutsideKey } from '../harness/outside.ts';
import { delegateWithSvid } from '../harness/service-token.ts';
import { installation } from '../harness/shared-system.ts';
import { application, sitePermit, workflows } from '../harness/workflow.ts';

const here = installation();
const decision = { decision: 'approved', permitNumber: 'P000001', validFrom: '2027-01-01' };

const recipient = z.object({ header: z.looseObject({ kid: z.string() }), encrypted_key: z.string() });
const envelope = z.looseObject({
  groups: z.array(
    z.looseObject({
      jwe: z.object({
        protected: z.string(),
        recipients: z.array(recipient),
        iv: z.string(),
        ciphertext: z.string(),
        tag: z.string(),
        aad: z.string(),
      }),
    }),
  ),
});
const transaction = z.looseObject({
  payload: z.string(),
  recipients: z.array(z.string()),
  signatures: z.array(z.looseObject({ algorithm: z.string() })),
});
const plaintext = z.object({
  salt: z.string(),
  fields: z.array(z.string()),
  data: z.record(z.string(), z.unknown()),
});
const refusal = z.looseObject({ code: z.string() });

/** A key for payloads that no service holds, as a sender names it. */
function outsideReader(algorithm: 'NISTP256' | 'X25519' | 'RSA') {
  const { publicKey, privateKey } =
    algorithm === 'RSA'
      ? generateKeyPairSync('rsa', { modulusLength: 4096 })
      : algorithm === 'X25519'
        ? generateKeyPairSync('x25519')
        : generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const bytes =
    algorithm === 'X25519'
      ? Buffer.from(publicKey.export({ format: 'jwk' }).x ?? '', 'base64url')
      : publicKey.export({ format: 'der', type: 'spki' });
  return { privateKey, key: { algorithm, publicKey: bytes.toString('base64') } };
}

describe('a workflow between wallets and keys of every type, through the gateway', () => {
  let applicant: Person;
  let officer: Person;
  let registerId = '';
  let flow: ReturnType<typeof workflows>;

  beforeAll(async () => {
    flow = workflows(here.api);
    const organization = await createOrganization(here.api, here.token(), 'planning');
    officer = await createPerson(here.api, here.token(), organization, {
      name: 'officer',
      role: 'Administrator',
      keyType: 'RSA',
    });
    applicant = await createPerson(here.api, here.token(), organization, {
      name: 'applicant',
      role: 'User',
      keyType: 'NISTP256',
    });
    const spec = { title: 'Keys', devMode: false };
    registerId = await createRegister(here.api, officer.token, spec, officer.wallet);
    await waitOnline(here.api, officer.token, registerId);
  });

  /** Publishes the site permit with a safety board, and starts an instance of it. */
  async function begin(blueprintId: string, board: string) {
    const wallets = { 'planning-office': officer.wallet.walletAddress, 'safety-board': board };
    await flow.publish(officer, { ...sitePermit(wallets), id: blueprintId }, registerId);
    const instanceId = await flow.start(applicant, blueprintId, registerId);
    return (actionId: number, payload: object) => ({
      instanceId,
      registerId,
      blueprintId,
      actionId,
      payload,
    });
  }
  const read = async (txId: string | null) => {
    const path = `/api/registers/${registerId}/transactions/${txId}`;
    const { body } = await here.api.expect(200, 'GET', path, { token: officer.token });
    return transaction.parse(body);
  };
  /** Opens the group of a recipient with jose, which the product does not use. */
  async function open(payload: string, kid: string, privateKey: KeyObject) {
    const { groups } = envelope.parse(JSON.parse(Buffer.from(payload, 'base64').toString()));
    const own = groups.filter(({ jwe }) => jwe.recipients.some(({ header }) => header.kid === kid));
    expect(own).toHaveLength(1);
    const [{ jwe } = expect.unreachable()] = own;
    const recipients = jwe.recipients.filter(({ header }) => header.kid === kid);
    const opened = await generalDecrypt({ ...jwe, recipients }, privateKey);
    return plaintext.parse(JSON.parse(Buffer.from(opened.plaintext).toString()));
  }

  test('P-256 and RSA wallets sign steps and read the steps of each other', async () => {
    const step = await begin('of-two-wallets', officer.wallet.walletAddress);
    const { instanceId } = step(0, {});
    const applied = await flow.complete(applicant, step(0, { ...application, floorAreaM2: 40 }));
    expect(applied.error).toBeNull();
    await flow.reach(applicant, instanceId, applied.transactionHash ?? '');
    expect((await flow.disclosed(officer, instanceId)).disclosedFields).toMatchObject({ floorAreaM2: 40 });
    const decided = await flow.complete(officer, step(2, decision));
    expect(decided.error).toBeNull();
    await flow.reach(applicant, instanceId, decided.transactionHash ?? '');
    expect((await flow.disclosed(applicant, instanceId)).disclosedFields).toMatchObject({
      permitNumber: 'P000001',
    });
    const collected = await flow.complete(applicant, step(3, { collected: true }));
    const ended = await flow.reach(applicant, instanceId, collected.transactionHash ?? '');
    expect(ended).toMatchObject({ state: 'Completed', completedActionCount: 3 });
    const algorithms = [applied, decided].map(async ({ transactionHash }) => {
      const { signatures } = await read(transactionHash);
      return signatures.map(({ algorithm }) => algorithm);
    });
    expect(await Promise.all(algorithms)).toEqual([['NISTP256'], ['RSA-4096']]);
  }, 60_000);

  test.each(['NISTP256', 'X25519', 'RSA'] as const)(
    'a recipient outside reads by the %s key that the sender names',
    async (algorithm) => {
      const { address: board } = createOutsideKey();
      const step = await begin(`outside-${algorithm.toLowerCase()}`, board);
      const unknown = await flow.take(applicant, step(0, application));
      expect([unknown.status, unknown.body]).toMatchObject([
        422,
        { code: 'RECIPIENT_KEY_UNRESOLVED', wallets: [board] },
      ]);
      const { key, privateKey } = outsideReader(algorithm);
      const broken = { ...key, publicKey: key.publicKey.slice(0, 20) };
      const wrong = await flow.take(applicant, {
        ...step(0, application),
        more: { externalRecipientKeys: { [board]: broken } },
      });
      expect([wrong.status, wrong.body]).toMatchObject([422, { code: 'RECIPIENT_KEY_UNRESOLVED' }]);
      const applied = await flow.complete(applicant, {
        ...step(0, application),
        more: { externalRecipientKeys: { [board]: key } },
      });
      expect(applied.error).toBeNull();
      const { payload, recipients } = await read(applied.transactionHash);
      expect(recipients).toContain(board);
      const { data, fields } = await open(payload, board, privateKey);
      const { siteReference, floorAreaM2, hazardous } = application;
      expect(data).toEqual({ siteReference, floorAreaM2, hazardous, riskTier: 'high' });
      expect(fields.toSorted()).toEqual(['/floorAreaM2', '/hazardous', '/riskTier', '/siteReference']);
    },
    60_000,
  );

  test('a delegated token that the caller gives is used, and no other token is', async () => {
    const step = await begin('by-delegation', officer.wallet.walletAddress);
    const payload = { ...application, floorAreaM2: 40 };
    const { email, password } = applicant;
    const again = await here.api.expect(200, 'POST', '/api/auth/login', { json: { email, password } });
    const second = z.looseObject({ access_token: z.string() }).parse(again.body).access_token;
    const given = (token: string) => ({ headers: { 'x-delegation-token': token } });
    const code = async (token: string) => {
      const { status, body } = await flow.take(applicant, { ...step(0, payload), ...given(token) });
      return [status, refusal.parse(body).code];
    };
    const ofOther = await delegateWithSvid(here.state, 'service-blueprint', officer.token);
    for (const token of [ofOther, applicant.token, 'forged'])
      expect(await code(token)).toEqual([403, 'DELEGATION_INVALID']);

    const own = await delegateWithSvid(here.state, 'service-blueprint', second);
    const applied = await flow.complete(applicant, { ...step(0, payload), ...given(own) });
    expect(applied.error).toBeNull();
    const { instanceId } = step(0, {});
    await flow.reach(applicant, instanceId, applied.transactionHash ?? '');
    const disclosed = () =>
      here.api.send('GET', `/api/workflows/${instanceId}/disclosures`, {
        token: applicant.token,
        ...given(own),
      });
    expect((await disclosed()).status).toBe(200);
    // With the session that it was made in, the delegated token ends; the caller's own session continues.
    await here.api.expect(200, 'POST', '/api/auth/logout', { token: second, json: {} });
    await expect.poll(async () => (await disclosed()).status, { timeout: 10_000 }).toBe(403);
    expect(await flow.disclosed(applicant, instanceId)).toMatchObject({ recipientResolved: true });
  }, 60_000);
});
