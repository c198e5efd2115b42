import { create } from '@bufbuild/protobuf';
import { describe, expect, test } from 'vitest';
import { createVerifier, nodeEd25519 } from '#core/crypto/verify.ts';
import { verifyPossession } from '#core/ledger/possession.ts';
import type { RpcContext } from '#kit/rpc/rpc.ts';
import { ProvePossessionRequestSchema } from '#protos/gen/chancery/validator/v1/validator_pb.js';
import { fakeSigner } from '../../testing/fake-signer.ts';
import { testKey } from '../../testing/keys.ts';
import { membershipHandlers } from './possession-rpc.ts';

const registerId = 'ab'.repeat(16);
const verifier = createVerifier(nodeEd25519());
const [one, two] = [testKey(1), testKey(2)];
const peer = { clientId: 'service-register', spiffeId: 'spiffe://test/service/service-register' };
const context: RpcContext = { peer, signal: new AbortController().signal };

describe('the proof of possession of a key', () => {
  const signer = fakeSigner(one, 'validator-0', two);
  const { provePossession } = membershipHandlers({ validatorId: 'validator-0', signer });
  const prove = (request: object) => provePossession(create(ProvePossessionRequestSchema, request), context);

  test('uses the newest key, or the one after a given key', async () => {
    for (const [request, key] of [
      [{ registerId }, two],
      [{ registerId, afterPublicKey: one.publicKey }, two],
    ] as const) {
      const { publicKey = '', signature = new Uint8Array(), ...rest } = await prove(request);
      expect([publicKey, rest]).toMatchObject([key.publicKey, { validatorId: 'validator-0' }]);
      const facts = { registerId, validatorId: 'validator-0', publicKey, algorithm: 'ED25519' } as const;
      expect(verifyPossession(verifier, facts, signature)).toBe(true);
    }
    await expect(prove({ registerId, afterPublicKey: two.publicKey })).rejects.toMatchObject({
      code: 'SIGNING_KEYS_EXHAUSTED',
    });
  });

  test('is bound to a register', async () => {
    await expect(prove({ registerId: 'nonsense' })).rejects.toMatchObject({ kind: 'invalid' });
  });
});
