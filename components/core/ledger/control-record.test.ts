import { describe, expect, it } from 'vitest';
import { walletAddress } from '../crypto/address.ts';
import { createSigner, type Signer } from '../crypto/sign.ts';
import { createVerifier, nodeEd25519 } from '../crypto/verify.ts';
import { encodeBase64 } from '../encoding/base64.ts';
import { canonicalJson } from '../encoding/jcs.ts';
import {
  type ControlRecord,
  creatorAddress,
  defaultCryptoPolicy,
  genesisConfigText,
  genesisEnvelope,
  initialValidators,
  judgeControlRecord,
  parseControlRecord,
} from './control-record.ts';
import { memberDid } from './did.ts';
import {
  attestationBytes,
  attestationDigest,
  isRosterRole,
  type RosterAttestation,
  type RosterRole,
} from './owner-attestation.ts';
import { defaultPolicy, isDefaultPolicy, ownerMayBypass, parsePolicy } from './policy.ts';
import { possessionBytes } from './possession.ts';
import { boundTxId, payloadHash } from './transaction.ts';

const verifier = createVerifier(nodeEd25519());
const registerId = '0123456789abcdef0123456789abcdef';
const createdAt = '2026-11-21T10:00:00.0000000+00:00';
const name = 'Loans';

function signerOf(fill: number, algorithm: 'ED25519' | 'NISTP256' = 'ED25519'): Signer {
  return createSigner({ algorithm, privateKey: new Uint8Array(32).fill(fill) });
}

function attestation(signer: Signer, role: RosterRole): RosterAttestation {
  const { algorithm } = signer;
  const subject = memberDid(walletAddress(algorithm, signer.publicKey));
  const data = { role, subject, registerId, registerName: name, grantedAt: createdAt };
  const signature = encodeBase64(signer.signDigest(attestationDigest(attestationBytes(data))));
  return {
    role,
    subject,
    publicKey: encodeBase64(signer.publicKey),
    signature,
    algorithm,
    grantedAt: createdAt,
  };
}

function validator(index: number): ControlRecord['validators']['validators'][number] {
  const signer = signerOf(10 + index);
  const facts = { registerId, validatorId: `validator-${index}`, publicKey: encodeBase64(signer.publicKey) };
  return {
    validatorId: facts.validatorId,
    publicKey: facts.publicKey,
    algorithm: 'ED25519',
    derivationContext: 'platform:docket-signing',
    status: 'Active',
    authorizedAt: createdAt,
    proofOfPossession: encodeBase64(signer.sign(possessionBytes(facts))),
  };
}

const [owner, admin] = [attestation(signerOf(1), 'Owner'), attestation(signerOf(2, 'NISTP256'), 'Admin')];
const four = [0, 1, 2, 3].map(validator);
const record: ControlRecord = {
  registerId,
  name,
  purpose: 'General',
  createdAt,
  attestations: [owner, admin],
  cryptoPolicy: defaultCryptoPolicy(createdAt, false),
  registerPolicy: defaultPolicy(),
  validators: { validators: four, requiredSignatures: 3, version: 1 },
  metadata: { sandbox: 'true' },
};
const judge = (change: Partial<ControlRecord>) =>
  judgeControlRecord({ ...record, ...change }, verifier).map(({ code, field }) => `${code} ${field}`);

describe('control record', () => {
  it('parses from JSON and passes its judgement', () => {
    const parsed = parseControlRecord(JSON.parse(canonicalJson(record)));
    expect(canonicalJson(parsed)).toBe(canonicalJson(record));
    expect(judgeControlRecord(parsed, verifier)).toEqual([]);
    expect(initialValidators(parsed).map((each) => each.validatorId)).toEqual(
      four.map((each) => each.validatorId),
    );
    expect(memberDid(creatorAddress(parsed) ?? '')).toBe(owner.subject);
  });

  it.each<readonly [string, object]>([
    ['no owner at all', { attestations: [] }],
    ['26 members', { attestations: Array.from({ length: 26 }, () => owner) }],
    ['an unknown role', { attestations: [{ ...owner, role: 'owner' }] }],
    ['no validators', { validators: { validators: [], requiredSignatures: 1, version: 1 } }],
    ['an empty name', { name: '' }],
    ['an unknown member', { extra: true }],
    ['another purpose', { purpose: 'general' }],
    ['another id', { registerId: 'x' }],
  ])('with %s is refused', (_name, change) => {
    expect(() => parseControlRecord({ ...record, ...change })).toThrow(
      expect.objectContaining({ kind: 'invalid', code: 'INVALID_CONTROL_RECORD' }),
    );
  });

  it('with a policy out of range is refused as a policy', () => {
    const registerPolicy = { consensus: { maxTransactionsPerDocket: 0 } };
    expect(() => parseControlRecord({ ...record, registerPolicy })).toThrow(
      expect.objectContaining({ code: 'INVALID_POLICY' }),
    );
  });

  it('every signature in it is judged', () => {
    const invalid = 'ATTESTATION_INVALID attestations.0';
    expect(judge({ attestations: [{ ...owner, signature: admin.signature }, admin] })).toEqual([invalid]);
    expect(judge({ attestations: [{ ...owner, signature: '!' }, admin] })).toEqual([invalid]);
    expect(judge({ attestations: [{ ...owner, grantedAt: 'later' }, admin] })).toEqual([invalid]);
    expect(judge({ attestations: [{ ...owner, subject: admin.subject }] })).toEqual([invalid]);
    expect(judge({ attestations: [owner, { ...admin, role: 'Designer' }] })).toEqual([
      'ATTESTATION_INVALID attestations.1',
    ]);
    expect(judge({ name: 'Other' })).toEqual([invalid, 'ATTESTATION_INVALID attestations.1']);
    const [first, second, ...rest] = four;
    if (first === undefined || second === undefined) throw new Error('four validators');
    const withFirst = (changed: typeof first) =>
      judge({ validators: { ...record.validators, validators: [changed, second, ...rest] } });
    const refused = ['INVALID_CONTROL_RECORD validators.validators.0'];
    expect(withFirst({ ...first, proofOfPossession: second.proofOfPossession })).toEqual(refused);
    expect(withFirst({ ...first, proofOfPossession: '' })).toEqual(refused);
    expect(withFirst({ ...first, derivationContext: 'platform:register-control' })).toEqual(refused);
    expect(withFirst({ ...first, validatorId: second.validatorId })).toContain(
      'INVALID_CONTROL_RECORD validators',
    );
  });

  it('needs owners, and quorums that the set can reach', () => {
    expect(judge({ attestations: [admin] })).toEqual(['INVALID_CONTROL_RECORD attestations']);
    expect(judge({ attestations: [owner, owner] })).toEqual([
      'INVALID_CONTROL_RECORD attestations',
      'INVALID_CONTROL_RECORD attestations',
    ]);
    const validators = { ...record.validators, requiredSignatures: 2 };
    expect(judge({ validators })).toEqual(['INVALID_CONTROL_RECORD validators.requiredSignatures']);
    expect(judge({ validators: { ...validators, requiredSignatures: 4 } })).toEqual([]);
  });

  it('becomes a genesis transaction whose id covers its metadata', () => {
    const hash = payloadHash(record);
    const facts = { record, payloadHash: hash, organizationId: 'org', systemWalletAddress: 'w1', createdAt };
    const envelope = genesisEnvelope(facts);
    expect(envelope).toMatchObject({
      type: 'Genesis',
      blueprintId: 'genesis',
      actionId: 'register-creation',
    });
    expect(envelope.metadata).toEqual({
      Type: 'Genesis',
      RegisterName: name,
      TenantId: 'org',
      SystemWalletAddress: 'w1',
      instanceOf: 'register-creation-v1',
    });
    const other = genesisEnvelope({ ...facts, organizationId: 'other' });
    expect(boundTxId(envelope, ['k'])).not.toBe(boundTxId(other, ['k']));
  });

  it('gives the configuration of docket 0', () => {
    expect(JSON.parse(genesisConfigText(record, 'acme'))).toEqual({
      registerName: name,
      creatorAddress: creatorAddress(record),
      initialValidators: four.map((each) => each.validatorId),
      policyVersion: 1,
      cryptoPolicyVersion: 1,
      protocol: 'bft-1',
      networkId: 'acme',
    });
    expect(isRosterRole('Owner') && !isRosterRole('owner')).toBe(true);
  });
});

describe('register policy', () => {
  it('has its published defaults', () => {
    expect(defaultPolicy()).toEqual({
      version: 1,
      governance: {
        quorumFormula: 'strict-majority',
        proposalTtlDays: 7,
        blueprintVersion: 'register-governance-v1',
      },
      validators: {
        registrationMode: 'consent',
        approvedValidators: [],
        minValidators: 1,
        maxValidators: 100,
        requireStake: false,
        operationalTtlSeconds: 60,
      },
      consensus: {
        signatureThresholdMin: 1,
        signatureThresholdMax: 100,
        maxTransactionsPerDocket: 1000,
        docketBuildIntervalMs: 1000,
        docketTimeoutSeconds: 30,
        maxDocketBytes: 1_048_576,
        maxTransactionBytes: 524_288,
        requireBoundTxId: false,
        precisionMs: 500,
        messageDelayMs: 15_000,
        maxPendingPerSender: 256,
      },
      leaderElection: { mechanism: 'rotating', heartbeatIntervalMs: 1000, leaderTimeoutMs: 3000 },
    });
    expect(isDefaultPolicy(defaultPolicy())).toBe(true);
    expect(isDefaultPolicy({ ...defaultPolicy(), updatedBy: 'did' })).toBe(false);
  });

  it('accepts words in any case, keeps unknown members, drops null, and is stable when parsed again', () => {
    const policy = parsePolicy({
      governance: { quorumFormula: 'Super_Majority', future: { a: 1 } },
      validators: { registrationMode: 'PUBLIC', stakeAmount: null },
      leaderElection: { mechanism: 'Rotating', termDurationSeconds: null },
      later: true,
    });
    expect(policy.governance).toMatchObject({ quorumFormula: 'supermajority', future: { a: 1 } });
    expect(policy.validators.registrationMode).toBe('public');
    expect(policy['later']).toBe(true);
    expect(canonicalJson(policy)).not.toContain('null');
    expect(canonicalJson(parsePolicy(policy))).toBe(canonicalJson(policy));
  });

  it.each([
    ['version', { version: 0 }],
    ['governance.proposalTtlDays', { governance: { proposalTtlDays: 91 } }],
    ['governance.quorumFormula', { governance: { quorumFormula: 'most' } }],
    ['validators.minValidators', { validators: { minValidators: 5, maxValidators: 4 } }],
    ['validators.requireStake', { validators: { requireStake: true } }],
    ['validators.operationalTtlSeconds', { validators: { operationalTtlSeconds: 9 } }],
    [
      'consensus.signatureThresholdMin',
      { consensus: { signatureThresholdMin: 3, signatureThresholdMax: 2 } },
    ],
    ['consensus.maxTransactionsPerDocket', { consensus: { maxTransactionsPerDocket: 10_001 } }],
    ['consensus.docketBuildIntervalMs', { consensus: { docketBuildIntervalMs: 9 } }],
    ['consensus.maxTransactionBytes', { consensus: { maxTransactionBytes: 600_000 } }],
    ['consensus.requireBoundTxId', { consensus: { requireBoundTxId: 'yes' } }],
    [
      'leaderElection.leaderTimeoutMs',
      { leaderElection: { heartbeatIntervalMs: 3000, leaderTimeoutMs: 3000 } },
    ],
  ])('%s out of range is refused', (field, value) => {
    expect(() => parsePolicy(value)).toThrow(
      expect.objectContaining({
        kind: 'invalid',
        code: 'INVALID_POLICY',
        violations: [expect.objectContaining({ field: `policy.${field}` })],
      }),
    );
  });

  it('other leader elections are known and not supported', () => {
    expect(() => parsePolicy({ leaderElection: { mechanism: 'raft' } })).toThrow(
      expect.objectContaining({ kind: 'unprocessable', code: 'MECHANISM_NOT_SUPPORTED' }),
    );
  });

  it('an owner decides alone by policy, or as the only voter', () => {
    const policy = defaultPolicy();
    expect([ownerMayBypass(policy, 1), ownerMayBypass(policy, 2)]).toEqual([true, false]);
    const open = parsePolicy({ governance: { ownerCanBypassQuorum: true } });
    expect(ownerMayBypass(open, 5)).toBe(true);
  });
});
