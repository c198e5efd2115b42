import { readFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { buildPublication, PUBLISH_ACTION } from '#core/blueprint/publication.ts';
import { encodeBase64 } from '#core/encoding/base64.ts';
import { payloadHash, signingDigest } from '#core/ledger/transaction.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { buildDocket } from '../../chain/building/docket.ts';
import { judgeDocket } from '../../chain/building/judge.ts';
import type { TestKey } from '../../testing/keys.ts';
import { registerId, systemKey, userKey, validatorKey, World } from '../../testing/world.ts';
import { buildCandidate } from '../verification/judge.ts';
import { parseSubmission } from '../verification/submission.ts';

const definition = JSON.parse(
  readFileSync(new URL('../../../core/blueprint/vectors/site-permit.json', import.meta.url), 'utf8'),
);
const publication = buildPublication(registerId, definition, 'did:platform:w:someone');
const { txId, payload, metadata, blueprintId } = publication;

/** The submission of the publication, or of a modified one under its id. */
function submission(world: World, change: { metadata?: Record<string, string>; key?: TestKey } = {}): string {
  const { key = systemKey, metadata: changed = metadata } = change;
  const draft = { key, blueprintId, actionId: PUBLISH_ACTION, payload, metadata: changed };
  const signature = encodeBase64(key.sign(signingDigest(txId, payloadHash(payload))));
  const signatures = [{ PublicKey: key.publicKey, SignatureValue: signature, Algorithm: 'ED25519' }];
  return world.sign({ ...draft, tamper: { TransactionId: txId, Signatures: signatures, Payload: payload } })
    .text;
}

describe('a publication where derived ids are required', () => {
  let world: World;
  beforeEach(async () => {
    world = await new World().open();
    await world.begin({ consensus: { requireBoundTxId: true } });
  });
  afterEach(() => world.remove());

  it('is sealed under the id derived from its content', async () => {
    expect(await world.submit(submission(world))).toMatchObject({ status: 200 });
    await waitFor(() => world.ledger.sealed.has(txId));
  });

  it.each([
    [
      'another publisher',
      { metadata: { ...metadata, publishedBy: 'did:platform:w:other' } },
      'VAL_STRUCT_011',
    ],
    ['no label', { metadata: {} }, 'VAL_STRUCT_011'],
    ['an unknown key', { key: userKey }, 'VAL_PERM_001'],
  ])('is refused with %s, also in a proposed docket', async (_what, change, code) => {
    const text = submission(world, change);
    expect((await world.submit(text)).body).toMatchObject({ code });
    const limits = { maxTransactionBytes: 524_288, requireBoundTxId: false };
    const candidate = {
      ...buildCandidate(parseSubmission(text), limits),
      exclusivePredecessor: false,
      addedAtMs: 0,
    };
    const { state } = world.register;
    const facts = { validatorAddress: validatorKey.address, nowMicros: BigInt(Date.now()) * 1000n };
    const found = judgeDocket(state, buildDocket(state, [candidate], facts));
    expect(found.map((one) => one.code)).toContain(code);
  });
});
