import { describe, expect, it } from 'vitest';
import { createVerifier, nodeEd25519 } from '#core/crypto/verify.ts';
import { decodeBase64Any } from '#core/encoding/base64.ts';
import { decodeHex } from '#core/encoding/hex.ts';
import { checkpointBody, checkpointOrigin, cosignatureBytes } from '#core/ledger/checkpoint.ts';
import { manualClock } from '#kit/clock/clock.ts';
import { RecentRoots } from '../../chain/sealing/recent-roots.ts';
import { fakeSigner } from '../../testing/fake-signer.ts';
import { testKey } from '../../testing/keys.ts';
import { cosign } from './cosign.ts';

const registerId = 'ab'.repeat(16);
const rootOf = (size: number): string => size.toString(16).padStart(64, '0');

describe('cosign', () => {
  const signer = fakeSigner(testKey(1), 'validator-0');
  const roots = new RecentRoots(4);
  for (let size = 1; size <= 10; size += 1) roots.add(size, rootOf(size));
  const deps = {
    clock: manualClock(1_795_000_000_900),
    findLog: (id: string) =>
      id === registerId ? { networkId: 'acme', signer, rootAt: (size: number) => roots.at(size) } : undefined,
  };

  it('signs the checkpoint of the C2SP format at the latest sizes', async () => {
    for (const size of [7, 10]) {
      const rootHash = decodeHex(rootOf(size));
      const { timeSeconds, signature } = await cosign(deps, { registerId, size, rootHash });
      expect(timeSeconds).toBe(1_795_000_000);
      const body = checkpointBody({ origin: checkpointOrigin('acme', registerId), size, rootHash });
      const publicKey = decodeBase64Any(signer.key.publicKey);
      const message = cosignatureBytes(body, timeSeconds);
      expect(
        createVerifier(nodeEd25519()).verify({ algorithm: 'ED25519', publicKey, message, signature }),
      ).toBe(true);
    }
  });

  it('signs no other root, no size it has not decided or no longer keeps, and no unknown register', async () => {
    const ask = (size: number, root: string, id = registerId) =>
      cosign(deps, { registerId: id, size, rootHash: decodeHex(root) });
    const before = signer.signed.length;
    await expect(ask(10, rootOf(9))).rejects.toMatchObject({ code: 'CHECKPOINT_DIVERGENT' });
    await expect(ask(11, rootOf(11))).rejects.toMatchObject({ code: 'CHECKPOINT_UNKNOWN' });
    await expect(ask(6, rootOf(6))).rejects.toMatchObject({ code: 'CHECKPOINT_UNKNOWN' });
    await expect(ask(10, rootOf(10), 'cd'.repeat(16))).rejects.toMatchObject({ code: 'REGISTER_NOT_FOUND' });
    expect(signer.signed.length).toBe(before);
  });
});
