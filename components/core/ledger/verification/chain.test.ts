import { beforeEach, describe, expect, it } from 'vitest';
import { createVerifier, nodeEd25519 } from '../../crypto/verify.ts';
import { isAppError } from '../../errors/errors.ts';
import { governanceDraft } from '../governance/build.ts';
import { at, owner, person, registerId } from '../governance/testing/scene.ts';
import { ChainVerifier, type SealedDocket } from './chain.ts';
import { findFaultLocation } from './fault.ts';
import { type SealedBytes, SealedRegister, sealTransaction } from './testing/sealed-register.ts';

const action = (n: number, seconds: number) =>
  sealTransaction(owner, { n }, { type: 'Action', createdAt: at(seconds) });

describe('the chain of a register', () => {
  let register: SealedRegister;
  let chain: ChainVerifier;

  beforeEach(() => {
    register = new SealedRegister(4);
    chain = new ChainVerifier(registerId, createVerifier(nodeEd25519()));
  });

  function take(docket: SealedDocket, transactions: readonly SealedBytes[]): void {
    chain.open(docket);
    for (const { record, payload } of transactions) chain.take(record, payload);
    chain.close();
  }

  const takeAll = () => {
    for (const { docket, transactions } of register.dockets) take(docket, transactions);
  };

  /** Code and place of a refusal. */
  function refusal(act: () => void): unknown {
    try {
      act();
    } catch (error) {
      if (isAppError(error, 'unprocessable')) return { code: error.code, ...findFaultLocation(error) };
      throw error;
    }
    return 'it verifies';
  }

  it('verifies, docket by docket', () => {
    register.seal(action(1, 30), action(2, 31));
    takeAll();
    expect([chain.height, chain.transactionCount, chain.missing]).toEqual([2, 3, 0]);
    expect(chain.judgeCheckpoint(register.checkpoint())).toHaveLength(4);
    expect(chain.rules.name).toBe('Loans');
  });

  it('needs dockets in their order, and every transaction of each', () => {
    const second = register.seal(action(1, 30));
    expect(refusal(() => chain.open(second))).toMatchObject({ code: 'PREVIOUS_DOCKET_REQUIRED' });
    const [genesis] = register.dockets;
    if (genesis === undefined) throw new Error('there is a genesis');
    expect(refusal(() => chain.take(new Uint8Array(), new Uint8Array()))).toMatchObject({
      code: 'DOCKET_MISSING',
    });
    chain.open(genesis.docket);
    expect(refusal(() => chain.close())).toMatchObject({ code: 'MERKLE_MISMATCH', docketNumber: 0 });
  });

  it('refuses what had expired when it was sealed', () => {
    const late = { type: 'Action', createdAt: at(10), expiresAt: at(50) } as const;
    const expired = sealTransaction(owner, { n: 1 }, late);
    register.seal(expired);
    expect(refusal(takeAll)).toEqual({ code: 'VAL_TIME_003', docketNumber: 1, txId: expired.txId });
  });

  it('refuses a second genesis, and control transactions of signers outside the roster', () => {
    const again = sealTransaction(owner, { n: 1 }, { type: 'Genesis', createdAt: at(10) });
    register.seal(again);
    expect(refusal(takeAll)).toEqual({ code: 'VAL_PERM_002', docketNumber: 1, txId: again.txId });
    register = new SealedRegister(4);
    chain = new ChainVerifier(registerId, createVerifier(nodeEd25519()));
    const { blueprintId, actionId, metadata } = governanceDraft('control.register.updatemetadata', {});
    const payload = { version: 2, registerId, title: 'Mine' };
    const stranger = sealTransaction(person(77), payload, {
      type: 'Control',
      createdAt: at(10),
      blueprintId,
      actionId,
      metadata,
    });
    register.seal(action(1, 20), stranger);
    expect(refusal(takeAll)).toMatchObject({ docketNumber: 1, txId: stranger.txId });
  });

  it('refuses what is larger than the policy allows', () => {
    const large = sealTransaction(
      owner,
      { n: 1 },
      { type: 'Action', createdAt: at(10), metadata: { text: 'x'.repeat(600_000) } },
    );
    register.seal(large);
    expect(refusal(takeAll)).toEqual({ code: 'VAL_SIZE_001', docketNumber: 1, txId: large.txId });
  });

  it('refuses votes that attest nothing, and certificates of too few members', () => {
    const sealed = register.seal(action(1, 30));
    const [genesis, one] = register.dockets;
    if (genesis === undefined || one === undefined) throw new Error('there are two dockets');
    take(genesis.docket, genesis.transactions);
    const [vote] = sealed.attestations;
    if (vote === undefined) throw new Error('there is a vote');
    const twice = { ...sealed, attestations: [vote, vote] };
    expect(refusal(() => take(twice, one.transactions))).toEqual({ code: 'VAL_SIG_002', docketNumber: 1 });
    const { certificate } = sealed;
    const few = { ...sealed, certificate: { ...certificate, signatures: certificate.signatures.slice(2) } };
    expect(refusal(() => take(few, one.transactions))).toEqual({ code: 'VAL_CERT_003', docketNumber: 1 });
    take(sealed, one.transactions);
    expect(chain.height).toBe(2);
  });
});
