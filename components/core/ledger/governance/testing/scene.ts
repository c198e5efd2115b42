import { walletAddress } from '../../../crypto/address.ts';
import { sha256Hex } from '../../../crypto/hash.ts';
import { createSigner, type Signer } from '../../../crypto/sign.ts';
import { createVerifier, nodeEd25519 } from '../../../crypto/verify.ts';
import { encodeBase64 } from '../../../encoding/base64.ts';
import { decodeHex } from '../../../encoding/hex.ts';
import { canonicalBytes } from '../../../encoding/jcs.ts';
import { formatLedgerTimestamp } from '../../../encoding/timestamp.ts';
import { type ControlRecord, defaultCryptoPolicy } from '../../control-record.ts';
import { memberDid } from '../../did.ts';
import type { RosterRole } from '../../owner-attestation.ts';
import { parsePolicy } from '../../policy.ts';
import { possessionBytes } from '../../possession.ts';
import { beginDocket, type DocketFold, foldControl, type RefusedIn } from '../apply.ts';
import { type GovernanceDraft, governanceDraft } from '../build.ts';
import type { ControlContext, ControlTransaction } from '../control.ts';
import {
  type Approval,
  approvalDigest,
  type Operation,
  type OperationPayload,
  operationSchema,
  type ValidatorEntry,
} from '../operation.ts';
import { applyEffect } from '../operations.ts';
import { genesisRules, type LedgerRules, rosterHash } from '../rules.ts';

export const registerId = '0123456789abcdef0123456789abcdef';
const startMicros = 1_795_255_200_000_000n;
const verifier = createVerifier(nodeEd25519());

/** A holder of a key, as a member of a roster or as a validator. */
export interface Person {
  readonly signer: Signer;
  readonly address: string;
  readonly did: string;
  readonly key: { readonly publicKey: string; readonly algorithm: 'ED25519' | 'NISTP256' };
}

/** A person with a key from one repeated byte. */
export function person(fill: number, algorithm: 'ED25519' | 'NISTP256' = 'ED25519'): Person {
  const signer = createSigner({ algorithm, privateKey: new Uint8Array(32).fill(fill) });
  const address = walletAddress(algorithm, signer.publicKey);
  return {
    signer,
    address,
    did: memberDid(address),
    key: { publicKey: encodeBase64(signer.publicKey), algorithm },
  };
}

/** A timestamp some seconds after the register began. */
export function at(seconds: number): string {
  return formatLedgerTimestamp(startMicros + BigInt(Math.round(seconds * 1_000_000)));
}

export function entryOf(validatorId: string, holder: Person): ValidatorEntry {
  const { publicKey } = holder.key;
  const proof = holder.signer.sign(possessionBytes({ registerId, validatorId, publicKey }));
  return { validatorId, ...holder.key, proofOfPossession: encodeBase64(proof) };
}

export const system = person(99);
export const owner = person(1);
export const keyOfValidator = (index: number): Person => person(50 + index);

export interface SceneDraft {
  readonly members?: readonly (readonly [Person, RosterRole])[];
  readonly validators?: number;
  readonly policy?: unknown;
  readonly devMode?: boolean;
}

function controlRecord(draft: SceneDraft): ControlRecord {
  const members = [[owner, 'Owner'] as const, ...(draft.members ?? [])];
  const validators = Array.from({ length: draft.validators ?? 4 }, (_, index) => ({
    ...entryOf(`validator-${index}`, keyOfValidator(index)),
    derivationContext: 'platform:docket-signing',
    status: 'Active' as const,
    authorizedAt: at(0),
  }));
  return {
    registerId,
    name: 'Loans',
    purpose: 'General',
    createdAt: at(0),
    attestations: members.map(([{ did, key }, role]) => ({
      role,
      subject: did,
      ...key,
      signature: 'unread',
      grantedAt: at(0),
    })),
    cryptoPolicy: defaultCryptoPolicy(at(0), draft.devMode ?? false),
    registerPolicy: parsePolicy(draft.policy ?? {}),
    validators: { validators, requiredSignatures: 1, version: 1 },
  };
}

/** A register with one docket a minute, filled by the test. */
export class Scene {
  rules: LedgerRules;
  docketNumber = 1;
  seconds = 60;
  #serial = 0;

  constructor(draft: SceneDraft = {}) {
    this.rules = genesisRules(controlRecord(draft), system.key);
  }

  get context(): ControlContext {
    return { docketNumber: this.docketNumber, timestamp: at(this.seconds), verifier };
  }

  transaction(draft: GovernanceDraft, signers: readonly Person[]): ControlTransaction {
    this.#serial += 1;
    return {
      txId: sha256Hex(`${this.#serial}`),
      type: 'Control',
      ...draft,
      senderAddress: signers[0]?.address ?? '',
      signers: signers.map(({ key }) => key),
      createdAt: at(this.seconds),
    };
  }

  /** An operation as its proposer writes it now. */
  operation<T extends Operation['operationType']>(
    operationType: T,
    proposer: Person,
    members: Omit<Extract<Operation, { operationType: T }>, 'operationType' | 'proposerDid' | 'proposedAt'>,
  ): Operation {
    const common = { operationType, proposerDid: proposer.did, proposedAt: at(this.seconds) };
    return operationSchema.parse({ ...common, ...members });
  }

  /** The payload of an operation; the roster stays the same when the operation is not possible. */
  payload(operation: Operation, approvers: readonly Person[] = []): OperationPayload {
    const effect = applyEffect(this.rules, operation, this.context);
    const after = 'violations' in effect ? this.rules : effect.rules;
    const approvals = approvers.map((approver) => this.approval(operation, approver));
    return {
      version: 2,
      operation: approvals.length === 0 ? operation : { ...operation, approvalSignatures: approvals },
      rosterHashBefore: rosterHash(registerId, this.rules.roster),
      rosterHashAfter: rosterHash(registerId, after.roster),
    };
  }

  approval(operation: Operation, approver: Person, isApproval = true): Approval {
    const rosterHashBefore = rosterHash(registerId, this.rules.roster);
    const digest = approvalDigest({
      registerId,
      approverDid: approver.did,
      isApproval,
      operation,
      rosterHashBefore,
    });
    const signature = encodeBase64(approver.signer.signDigest(decodeHex(digest)));
    return { approverDid: approver.did, signature, isApproval };
  }

  /** Folds transactions into the next docket, which is sealed when all of them fit. */
  seal(...transactions: readonly ControlTransaction[]): DocketFold | RefusedIn {
    const { context } = this;
    let fold = beginDocket(this.rules, context);
    for (const transaction of transactions) {
      const next = foldControl(fold, transaction, context);
      if ('violations' in next) return { ...next, txId: transaction.txId };
      fold = next;
    }
    this.rules = fold.rules;
    this.docketNumber += 1;
    this.seconds += 60;
    return fold;
  }

  /**
   * Seals one governance transaction in a docket of its own; returns the codes of the refusal, none when it is sealed.
   */
  act(actionId: string, payload: unknown, ...signers: readonly Person[]): string[] {
    const fold = this.seal(this.transaction(governanceDraft(actionId, payload), signers));
    return 'violations' in fold ? fold.violations.map(({ code }) => code) : [];
  }

  /** Seals an operation in one transaction, signed by the proposer and then the approvers. */
  decide(operation: Operation, proposer: Person, ...approvers: readonly Person[]): string[] {
    return this.act(operation.operationType, this.payload(operation, approvers), proposer);
  }

  roleOf({ did }: Person): RosterRole | undefined {
    return this.rules.roster.find((entry) => entry.subject === did)?.role;
  }

  statusOf(validatorId: string): string | undefined {
    return this.rules.validators.find((each) => each.validatorId === validatorId)?.status;
  }
}

/** Bytes of a payload as they are sealed. */
export function bytesOf(payload: unknown): Uint8Array {
  return canonicalBytes(payload);
}
