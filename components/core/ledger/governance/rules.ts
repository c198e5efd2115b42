import type { Algorithm } from '../../crypto/algorithm.ts';
import { sha256Hex } from '../../crypto/hash.ts';
import { canonicalJson } from '../../encoding/jcs.ts';
import { compareCodeUnits } from '../../encoding/text.ts';
import { sortMembers, type ValidatorMember } from '../consensus.ts';
import type { ControlRecord, CryptoPolicy } from '../control-record.ts';
import { memberDid } from '../did.ts';
import type { RosterRole } from '../owner-attestation.ts';
import type { QUORUM_FORMULAS, RegisterPolicy } from '../policy.ts';
import type { Operation } from './operation.ts';

export type QuorumFormula = (typeof QUORUM_FORMULAS)[number];

/** Statuses of a validator on a register. */
export const VALIDATOR_STATUSES = ['Pending', 'Active', 'Suspended', 'Removed'] as const;
export type ValidatorStatus = (typeof VALIDATOR_STATUSES)[number];

/** A key in the form of every hashed format. */
export interface LedgerKey {
  /** Standard padded base64 of the canonical key form. */
  readonly publicKey: string;
  readonly algorithm: Algorithm;
}

/** One member of the roster. */
export interface RosterEntry extends LedgerKey {
  readonly role: RosterRole;
  /** `did:platform:w:{address}`; the address is that of the key. */
  readonly subject: string;
  readonly grantedAt: string;
}

/** One validator of the register, whatever its status. */
export interface LedgerValidator extends ValidatorMember {
  readonly status: ValidatorStatus;
  readonly proofOfPossession: string;
  /** Timestamp of the docket that registered it, or of the control record. */
  readonly registeredAt: string;
  readonly approvedAt?: string | undefined;
  /** `genesis`, or the DID of the proposer; absent for one that registered itself in public mode. */
  readonly approvedBy?: string | undefined;
  /** First docket for which the present status and key count. */
  readonly effectiveFromDocket: number;
  /** Set by a change from public to consent: the validator is removed at the first docket that is not earlier. */
  readonly ejectAt?: string | undefined;
}

interface ProposalVote {
  readonly did: string;
  readonly isApproval: boolean;
  /** Transaction that carried the vote. */
  readonly txId: string;
  /** Timestamp of the docket that sealed it. */
  readonly at: string;
  readonly comment?: string | undefined;
}

/** A proposal that is open, or approved and not enacted. */
export interface OpenProposal {
  /** Id of the transaction that opened it. */
  readonly proposalId: string;
  readonly operation: Operation;
  readonly rosterHashBefore: string;
  readonly rosterHashAfter: string;
  readonly status: 'Pending' | 'Approved';
  readonly openedAt: string;
  readonly openedInDocket: number;
  /** A ledger timestamp. */
  readonly expiresAt: string;
  readonly quorumFormula: QuorumFormula;
  /** Number of votes that may be cast, and of votes that are needed. */
  readonly eligible: number;
  readonly required: number;
  readonly votes: readonly ProposalVote[];
  /** Timestamp of the docket that sealed the deciding vote. */
  readonly approvedAt?: string | undefined;
}

/** An enacted operation that is recorded while its approvals are still valid, so that it is not enacted again. */
export interface EnactedOperation {
  readonly operationId: string;
  /** End of the time in which its approvals could be used under any policy. */
  readonly expiresAt: string;
}

/** Everything that a register's own control transactions decide: a projection that any reader can replay. */
export interface LedgerRules {
  readonly registerId: string;
  readonly name: string;
  readonly description?: string | undefined;
  readonly purpose: 'General' | 'System';
  readonly metadata: Readonly<Record<string, string>>;
  readonly createdAt: string;
  /** The installation's register-control key: the signer of the genesis transaction. */
  readonly systemKey: LedgerKey;
  readonly roster: readonly RosterEntry[];
  /** 1 at genesis, incremented by each change. */
  readonly rosterVersion: number;
  readonly validators: readonly LedgerValidator[];
  readonly validatorSetVersion: number;
  readonly policy: RegisterPolicy;
  readonly cryptoPolicy: CryptoPolicy;
  readonly proposals: readonly OpenProposal[];
  readonly enacted: readonly EnactedOperation[];
  /** Number of governance transactions since genesis. */
  readonly controlCount: number;
}

interface GenesisSigner {
  readonly publicKey: string;
  readonly algorithm: Algorithm;
}

/**
 * The rules a register starts with.
 * @param signer the first signature of the genesis transaction: the installation's register-control key
 */
export function genesisRules(record: ControlRecord, signer: GenesisSigner): LedgerRules {
  return {
    registerId: record.registerId,
    name: record.name,
    description: record.description,
    purpose: record.purpose,
    metadata: record.metadata ?? {},
    createdAt: record.createdAt,
    systemKey: { publicKey: signer.publicKey, algorithm: signer.algorithm },
    roster: record.attestations.map(({ role, subject, publicKey, algorithm, grantedAt }) => ({
      role,
      subject,
      publicKey,
      algorithm,
      grantedAt,
    })),
    rosterVersion: 1,
    validators: record.validators.validators.map((each) => ({
      validatorId: each.validatorId,
      publicKey: each.publicKey,
      algorithm: each.algorithm,
      status: each.status === 'Active' ? 'Active' : 'Removed',
      proofOfPossession: each.proofOfPossession,
      registeredAt: each.authorizedAt,
      approvedAt: each.authorizedAt,
      approvedBy: 'genesis',
      effectiveFromDocket: 0,
    })),
    validatorSetVersion: record.validators.version,
    policy: record.registerPolicy,
    cryptoPolicy: record.cryptoPolicy,
    proposals: [],
    enacted: [],
    controlCount: 0,
  };
}

/** The validator set after a docket: the active validators in the order of indexes and proposers. */
export function activeMembers(rules: LedgerRules): ValidatorMember[] {
  const active = rules.validators.filter((each) => each.status === 'Active');
  return sortMembers(
    active.map(({ validatorId, publicKey, algorithm }) => ({ validatorId, publicKey, algorithm })),
  );
}

/** Members of the roster that vote: Owner and Admin. */
export function votersOf(rules: LedgerRules): RosterEntry[] {
  return rules.roster.filter(({ role }) => role === 'Owner' || role === 'Admin');
}

/** The member of the roster with a DID. */
export function findRosterEntry(rules: LedgerRules, did: string): RosterEntry | undefined {
  return rules.roster.find((entry) => entry.subject === did);
}

/** The member of the roster that holds a key. */
export function findRosterKey(rules: LedgerRules, key: LedgerKey): RosterEntry | undefined {
  return rules.roster.find((entry) => isSameKey(entry, key));
}

/** Whether two keys are equal; both are in the canonical key form. */
export function isSameKey(left: LedgerKey, right: LedgerKey): boolean {
  return left.algorithm === right.algorithm && left.publicKey === right.publicKey;
}

/** Whether the holder of an address may delete the register: Owner or Admin of the present roster. */
export function mayDelete(rules: LedgerRules, address: string): boolean {
  return votersOf(rules).some((entry) => entry.subject === memberDid(address));
}

/**
 * Hash of a roster, lower-case hex: SHA-256 over canonical JSON of the register and its members by subject. It covers
 * the register, so that no approval counts on another register.
 */
export function rosterHash(registerId: string, roster: readonly RosterEntry[]): string {
  const members = roster
    .map(({ subject, role, publicKey, algorithm }) => ({ subject, role, publicKey, algorithm }))
    .toSorted((left, right) => compareCodeUnits(left.subject, right.subject));
  return sha256Hex(canonicalJson({ domain: 'platform:roster:v1', registerId, roster: members }));
}
