import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { verifyDisclosure } from '#core/blueprint/disclosure/verify.ts';
import { createVerifier, nodeEd25519 } from '#core/crypto/verify.ts';
import { application, startPermits } from '../testing/permits.ts';

type Permits = Awaited<ReturnType<typeof startPermits>>;

const verifier = createVerifier(nodeEd25519());

describe('disclosure files', () => {
  let permits: Permits;
  beforeAll(async () => {
    permits = await startPermits('blueprint_disclosures');
  });
  afterAll(() => permits.world.stop());
  afterEach(() => permits.world.wallets.set('designer', [permits.wallets.board]));

  const read = (token: string, query = '?proof=true', path = '/disclosures') =>
    permits.world.call('GET', `/api/workflows/${permits.at.instanceId}${path}${query}`, { token });

  /** An instance with a step of the applicant and one of the safety board. */
  async function takeTwo() {
    await permits.prepare(false);
    await permits.done(0, application, { token: 'user' });
    const reviewed = { wallet: permits.wallets.board, token: 'designer' };
    await permits.done(1, { safetyScore: 80 }, reviewed);
  }

  it('prove to third parties what a party was shown, and nothing of other groups', async () => {
    await takeTwo();
    const { body, headers, status } = await read('designer');
    expect([status, headers['cache-control']]).toEqual([200, 'no-store']);
    const shown = { siteReference: 'AB-1234', floorAreaM2: 620, hazardous: false, riskTier: 'high' };
    const steps = permits.sealed().map(({ record }) => record.txId);
    expect(body.disclosures.map((each: { transactionId: string }) => each.transactionId)).toEqual(steps);
    expect(body.warnings).toEqual([]);
    const [file] = body.disclosures[0].files;
    expect(body.disclosures[0].files).toHaveLength(1);
    expect(file).not.toContain('ann@example.org');
    const verdict = verifyDisclosure(Buffer.from(file), verifier);
    expect(verdict.findings).toEqual([]);
    if (!('proven' in verdict)) throw new Error('nothing is proven');
    expect(verdict.proven.shown.data).toEqual(shown);
    expect(verdict.proven.record.txId).toBe(steps[0]);
    const kids = verdict.proven.group.jwe.recipients.map(({ header }) => header.kid);
    expect(kids).toEqual([`${permits.wallets.board}#platform:payload-encryption`]);
    const whole = await read('user');
    const [own] = whole.body.disclosures[0].files;
    expect(verifyDisclosure(Buffer.from(own), verifier).findings).toEqual([]);
    expect(own).toContain('ann@example.org');
  });

  it('do not verify with any byte changed', async () => {
    await takeTwo();
    const file: string = (await read('designer')).body.disclosures[0].files[0];
    for (let at = 0; at < file.length; at += 97) {
      const other = file[at] === 'a' ? 'b' : 'a';
      const changed = `${file.slice(0, at)}${other}${file.slice(at + 1)}`;
      expect([at, 'proven' in verifyDisclosure(Buffer.from(changed), verifier)]).toEqual([at, false]);
    }
  });

  it('are given for one step, and only where they are asked for', async () => {
    await takeTwo();
    const [first, second] = permits.sealed().map(({ record }) => record.txId);
    const { body } = await read('designer', `?proof=true&transactionId=${second}`);
    expect(body.disclosures.map((each: { files: string[] }) => each.files.length)).toEqual([0, 1]);
    const plain = await read('designer', '');
    for (const each of plain.body.disclosures)
      expect(Object.keys(each).sort()).toEqual(['actionId', 'actionTitle', 'data', 'disclosedAt']);
    const refused = async (token: string, query: string) => {
      const answer = await read(token, query);
      return [answer.status, answer.body.code];
    };
    expect(await refused('designer', `?transactionId=${first}`)).toEqual([400, 'INVALID_REQUEST']);
    expect(await refused('designer', `?proof=true&transactionId=${'e'.repeat(64)}`)).toEqual([
      404,
      'TX_NOT_FOUND',
    ]);
    // the applicant is shown nothing of the review, so its step is not found
    expect(await refused('user', `?proof=true&transactionId=${second}`)).toEqual([404, 'TX_NOT_FOUND']);
    expect((await refused('designer', '?proof=maybe'))[0]).toBe(400);
    expect((await read('designer', '?proof=true', '/actions/2/disclosures')).body).toMatchObject({
      actionId: 2,
      disclosures: [{ files: [expect.any(String)] }, { files: [expect.any(String)] }],
    });
  });

  it('are given to recipients alone, each group once', async () => {
    await takeTwo();
    expect((await read('stranger')).body).toMatchObject({ recipientResolved: false, disclosures: [] });
    // the applicant and the planning office read the same group
    permits.world.keys.add('office', 'admin', 'designer');
    permits.world.keys.add('applicant', 'user', 'designer');
    const { applicant, office } = permits.wallets;
    permits.world.wallets.set('designer', [applicant, office]);
    const { body } = await read('designer');
    expect(body.disclosures[0].files).toHaveLength(1);
    expect(body.warnings).toEqual([]);
  });

  it('are none on a register in development mode, and none that would not verify', async () => {
    await permits.prepare(true);
    await permits.apply();
    const { body } = await read('designer');
    expect([body.disclosures[0].files, body.warnings]).toEqual([[], []]);
    await takeTwo();
    const [step] = permits.sealed();
    if (step === undefined) throw new Error('no step');
    const payload = permits.world.sealing.payloads.get(step.record.txId) ?? new Uint8Array();
    permits.world.sealing.payloads.set(step.record.txId, Buffer.concat([payload, Buffer.from(' ')]));
    const altered = await read('designer', `?proof=true&transactionId=${step.record.txId}`);
    expect(altered.body).toMatchObject({
      disclosures: [{ files: [] }, { files: [] }],
      warnings: [{ actionId: 0, code: 'PROOF_UNAVAILABLE' }],
    });
  });
});
