import { expect } from 'vitest';
import { isAlgorithm } from '#core/crypto/algorithm.ts';
import { type ValidatorMember, validatorSetHash } from '#core/ledger/consensus.ts';
import { activeMembers } from '#core/ledger/governance/rules.ts';
import { checkEvidence, collectEvidence, fetchDockets, replayRules } from '../harness/evidence.ts';
import { until } from '../harness/wait.ts';
import { type OpenRegister, sealAction, sealedIn, validatorsOf } from './ejection.ts';

async function membersOf(here: OpenRegister): Promise<ValidatorMember[]> {
  const all = await validatorsOf(here);
  return all.flatMap(({ validatorId, publicKey, algorithm, status }): ValidatorMember[] =>
    status === 'active' && isAlgorithm(algorithm) ? [{ validatorId, publicKey, algorithm }] : [],
  );
}

/** Seals Actions until a validator's signature is in the certificate of a docket from `from` on. */
async function sealUntilSigned(here: OpenRegister, validatorId: string, from: number): Promise<void> {
  const { api, token, registerId } = here;
  let count = 0;
  await until(`${validatorId} signs docket ${from} or a later one`, 60_000, async () => {
    count += 1;
    const number = await sealAction(here, { rotated: validatorId, from, count });
    const path = `/api/registers/${registerId}/dockets/${number}`;
    const { certificate } = (await api.expect(200, 'GET', path, { token })).body as {
      certificate: { signatures: { validatorId: string }[] };
    };
    const isIn = certificate.signatures.some((one) => one.validatorId === validatorId);
    return number >= from && isIn ? true : undefined;
  });
}

/**
 * A validator is given its next key: the set of the docket that says so is the old one, that of the next docket has the
 * new key, with which it signs; history verifies with the keys of its heights.
 */
export async function rotateKey(here: OpenRegister, validatorId: string): Promise<void> {
  const { api, token, registerId } = here;
  const before = await membersOf(here);
  const path = `/api/validators/${registerId}/${validatorId}/rotate-key`;
  const bringing = await sealedIn(here, await api.send('POST', path, { token, json: { reason: 'due' } }));
  await sealUntilSigned(here, validatorId, bringing + 1);
  const after = await membersOf(here);
  const changed = after.filter((one, index) => one.publicKey !== before[index]?.publicKey);
  expect(changed.map((one) => one.validatorId)).toEqual([validatorId]);
  const dockets = await fetchDockets(api, token, `/api/registers/${registerId}`);
  const hashAt = (number: number) => dockets[number]?.validatorSetHash;
  expect(hashAt(bringing)).toBe(validatorSetHash(before));
  for (let number = bringing + 1; number < dockets.length; number += 1) {
    expect(hashAt(number), `docket ${number}`).toBe(validatorSetHash(after));
  }
  const evidence = await collectEvidence(api, token, registerId);
  checkEvidence(evidence);
  expect(activeMembers(replayRules(evidence))).toEqual(after);
}
