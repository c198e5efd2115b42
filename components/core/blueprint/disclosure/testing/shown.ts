import { x25519 } from '@noble/curves/ed25519.js';
import { createRandom } from '#kit/testing/random.ts';
import { AES_GCM, aes256gcm } from '../../../crypto/aes-gcm.ts';
import { scanJson, toValue } from '../../../encoding/json.ts';
import { NOTE_KINDS, parseCheckpoint } from '../../../ledger/checkpoint.ts';
import { at, person, registerId, system } from '../../../ledger/governance/testing/scene.ts';
import { logLeaf } from '../../../ledger/log.ts';
import { inclusion } from '../../../ledger/merkle.ts';
import { presentPath } from '../../../ledger/proof-path.ts';
import { recordLeaf } from '../../../ledger/record.ts';
import { SealedRegister, sealTransaction } from '../../../ledger/verification/testing/sealed-register.ts';
import type { Envelope, PayloadOwner } from '../../payload/envelope.ts';
import { planGroups } from '../../payload/groups.ts';
import { jweAad, type RecipientKey, sealGroups } from '../../payload/seal.ts';
import { type DisclosureEvidence, type DisclosureFile, writeDisclosure } from '../file.ts';

export const instanceId = '0190a5b2-7c3d-7e4f-8a1b-2c3d4e5f6a7b';
const applicant = person(7);

export const action: PayloadOwner & { readonly registerId: string } = {
  registerId,
  type: 'action',
  blueprintId: 'site-permit-approval',
  actionId: '0',
  instanceId,
  blueprintDefinitionTxId: 'a'.repeat(64),
};

function keyOf(kid: string, fill: number): RecipientKey {
  return { kid, algorithm: 'X25519', publicKey: x25519.getPublicKey(new Uint8Array(32).fill(fill)) };
}

/** The groups of an action, and the plaintext of the first one, which its author knows. */
function sealAction(): { readonly envelope: Envelope; readonly group: DisclosureFile['group'] } {
  const data = { siteReference: 'AB-1234', floorAreaM2: 620, contact: { email: 'ä@example.org' } };
  const groups = planGroups([
    { address: 'w1applicant', pointers: ['/*'], data },
    { address: 'w1office', pointers: ['/*'], data },
    { address: 'w1board', pointers: ['/siteReference'], data: { siteReference: 'AB-1234' } },
  ]);
  const keys = new Map(['w1applicant', 'w1office', 'w1board'].map((kid, index) => [kid, keyOf(kid, index)]));
  const source = createRandom(5);
  const drawn: Uint8Array[] = [];
  const random = (size: number) => {
    const bytes = source.bytes(size);
    drawn.push(Uint8Array.from(bytes));
    return bytes;
  };
  const envelope = sealGroups(action, groups, { keys, random });
  const [contentKey] = drawn.filter(({ length }) => length === AES_GCM.keyBytes).slice(1);
  const [first] = envelope.groups;
  if (first === undefined || contentKey === undefined) throw new Error('no group');
  const { jwe } = first;
  const [iv, ciphertext, tag] = [jwe.iv, jwe.ciphertext, jwe.tag].map((text) =>
    Buffer.from(text, 'base64url'),
  );
  if (iv === undefined || ciphertext === undefined || tag === undefined) throw new Error('no content');
  const opened = aes256gcm.open(
    { key: contentKey, iv, aad: jweAad(jwe.protected, jwe.aad) },
    { ciphertext, tag },
  );
  if (opened === undefined) throw new Error('the content key is another one');
  return { envelope, group: toValue(scanJson(opened)) as DisclosureFile['group'] };
}

/** Evidence of a group that a register sealed in its second docket among three transactions. */
export function evidence(
  change: { readonly metadata?: Readonly<Record<string, string>> } = {},
): DisclosureEvidence {
  const register = new SealedRegister(2);
  const { envelope, group } = sealAction();
  const members = {
    type: 'Action',
    createdAt: at(30),
    blueprintId: action.blueprintId,
    actionId: '0',
  } as const;
  const shown = sealTransaction(applicant, envelope, {
    ...members,
    metadata: change.metadata ?? { instanceId },
  });
  const other = (n: number) => sealTransaction(applicant, { n }, { type: 'Action', createdAt: at(n) });
  register.seal(other(1), shown, other(2));
  register.seal(other(3));
  const headers = register.dockets.map(({ docket }) => docket.header);
  const [, docket] = headers;
  if (docket === undefined) throw new Error('no docket');
  const leaves = (register.dockets[1]?.transactions ?? []).map(({ record }) => recordLeaf(record));
  const checkpoint = register.checkpoint();
  const { origin } = parseCheckpoint(checkpoint);
  return {
    record: shown.record,
    payload: shown.payload,
    group,
    docket,
    inclusion: presentPath(inclusion(leaves, 1)),
    log: presentPath(inclusion(headers.map(logLeaf), 1)),
    checkpoint,
    checkpointKey: { name: origin, kind: NOTE_KINDS.log, publicKey: system.signer.publicKey },
  };
}

/** A file that verifies. */
export function disclosureFile(): Uint8Array {
  return writeDisclosure(evidence());
}
