import { rememberedAddresses, walletAddress } from '../../crypto/address.ts';
import { parsePublicKey } from '../../crypto/public-key.ts';
import type { Verifier } from '../../crypto/verify.ts';
import { isAppError, type Violation, violation } from '../../errors/errors.ts';
import { validationViolation } from '../../errors/validation-codes.ts';
import { type ConsensusVote, isAttestation } from '../attestation.ts';
import { type Certificate, verifyCertificate } from '../certificate.ts';
import { type ValidatorMember, validatorSetHash } from '../consensus.ts';
import { checkDocketText, type DocketHeader, docketHash, judgeHeader, judgeSuccession } from '../docket.ts';
import { applyControls } from '../governance/apply.ts';
import { type ControlTransaction, controlTransaction } from '../governance/control.ts';
import { judgeCrypto } from '../governance/policies.ts';
import { activeMembers, type LedgerRules } from '../governance/rules.ts';
import { logLeaf } from '../log.ts';
import { Frontier } from '../merkle.ts';
import { parseRecord, recordLeaf, type SealedRecord } from '../record.ts';
import { verifyTransactionSignature } from '../transaction.ts';
import { demandNone, type FaultLocation, faultOf } from './fault.ts';
import { type Genesis, readGenesis } from './genesis.ts';
import { judgeCheckpoint } from './head-checkpoint.ts';
import { judgePayload, judgeRecord } from './records.ts';

/** A docket as it is stored, without its records. */
export interface SealedDocket {
  readonly header: DocketHeader;
  readonly certificate: Certificate;
  readonly attestations: readonly ConsensusVote[];
}

/** A docket of which the transactions are being read. */
interface OpenDocket extends SealedDocket {
  readonly leaves: Uint8Array[];
  readonly controls: ControlTransaction[];
  sizeBytes: number;
}

/** Judges that certificate and sealing address belong to the docket's own validator set. */
export function judgeSealing(
  { header, certificate }: Pick<SealedDocket, 'header' | 'certificate'>,
  set: {
    readonly members: readonly ValidatorMember[];
    readonly signatureThresholdMin: number;
    readonly networkId: string;
  },
  verifier: Verifier,
): Violation[] {
  const { registerId } = header;
  if (header.validatorSetHash !== validatorSetHash(set.members)) {
    const text = 'The set is not that of the register at this height.';
    return [validationViolation('VAL_CERT_001', 'validatorSetHash', text)];
  }
  const sealedBy = set.members.some(
    ({ algorithm, publicKey }) =>
      walletAddress(algorithm, parsePublicKey(algorithm, publicKey)) === header.validatorAddress,
  );
  if (!sealedBy) {
    return [validationViolation('VAL_CERT_001', 'validatorAddress', 'The sealing address is not a member.')];
  }
  return verifyCertificate(certificate, { ...set, registerId, verifier, docket: header });
}

/** Judges the votes of a docket: each by another member of its set, over this docket. */
export function judgeAttestations(
  { header, attestations }: Pick<SealedDocket, 'header' | 'attestations'>,
  members: readonly ValidatorMember[],
  verifier: Verifier,
): Violation[] {
  const voters = new Set(attestations.map((vote) => vote.validatorAddress));
  const right =
    voters.size === attestations.length &&
    attestations.every((vote) => isAttestation(vote, header.hash, members, verifier));
  return right ? [] : [validationViolation('VAL_SIG_002', 'attestations', 'An attestation does not verify.')];
}

/** Judges the size of a docket by the policy in force before it. */
export function judgeLimits(
  header: DocketHeader,
  limits: { readonly maxTransactionsPerDocket: number; readonly maxDocketBytes: number },
): Violation[] {
  const { transactionIds, sizeBytes } = header;
  const fits = transactionIds.length <= limits.maxTransactionsPerDocket && sizeBytes <= limits.maxDocketBytes;
  const text = 'The docket is larger than the policy allows.';
  return fits ? [] : [validationViolation('VAL_SIZE_001', 'sizeBytes', text)];
}

/** Judges a transaction by the policies in force before its docket. A genesis has none before it. */
function judgePolicies(record: SealedRecord, sizeBytes: number, rules: LedgerRules | undefined): Violation[] {
  if (rules === undefined) return [];
  const found = judgeCrypto(
    rules.cryptoPolicy,
    record.signatures.map(({ algorithm }) => algorithm),
  ).filter(({ severity }) => severity !== 'Warning');
  if (sizeBytes > rules.policy.consensus.maxTransactionBytes) {
    found.push(validationViolation('VAL_SIZE_001', 'record'));
  }
  return found;
}

/** Judges that sizeBytes is the sum of the records' sizes. */
export function judgeSize(header: DocketHeader, sizeBytes: number): Violation[] {
  return sizeBytes === header.sizeBytes
    ? []
    : [violation('HASH_MISMATCH', 'sizeBytes is not the sum of the records', 'sizeBytes')];
}

function readRecord(bytes: Uint8Array, place: FaultLocation): SealedRecord {
  try {
    return parseRecord(bytes);
  } catch (error) {
    if (isAppError(error, 'invalid')) throw faultOf([violation(error.code, error.message, 'record')], place);
    throw error;
  }
}

/**
 * Verifies a register from its first docket on, as a replica does, with memory for the rules and one docket's leaves:
 * `open` a docket, `take` its transactions, `close` it. The first fault throws; faultOf builds the error,
 * findFaultLocation reads its place. Two facts are not judged, because they need an index of all history: that no id is
 * sealed in two dockets, and that predecessors exist. The quorum of each set signed for those.
 */
export class ChainVerifier {
  readonly registerId: string;
  readonly #verifier: Verifier;
  readonly #log = Frontier.empty();
  readonly #addressOf = rememberedAddresses(1_000);
  #genesis: Genesis | undefined;
  #rules: LedgerRules | undefined;
  #head: DocketHeader | undefined;
  #open: OpenDocket | undefined;
  #transactionCount = 0;

  constructor(registerId: string, verifier: Verifier) {
    this.registerId = registerId;
    this.#verifier = verifier;
  }

  /** Number of closed dockets. */
  get height(): number {
    return this.#log.size;
  }

  get transactionCount(): number {
    return this.#transactionCount;
  }

  /** The last closed docket. */
  get head(): DocketHeader | undefined {
    return this.#head;
  }

  /** Root of the register log over the closed dockets, 32 bytes. */
  get logRoot(): Uint8Array {
    return this.#log.root();
  }

  /** The rules in force for the next docket. Throws while no docket is closed. */
  get rules(): LedgerRules {
    if (this.#rules === undefined) throw faultOf([violation('DOCKET_MISSING', 'The register has no docket')]);
    return this.#rules;
  }

  /** The installation that docket 0 names. Throws while no docket is closed. */
  get networkId(): string {
    if (this.#genesis === undefined)
      throw faultOf([violation('DOCKET_MISSING', 'The register has no docket')]);
    return this.#genesis.networkId;
  }

  /** Number of transactions that the open docket still needs. */
  get missing(): number {
    return this.#open === undefined ? 0 : this.#open.header.transactionIds.length - this.#open.leaves.length;
  }

  /** Begins the next docket; judges number, link, time and hash. */
  open(docket: SealedDocket): void {
    const { header } = docket;
    const place = { docketNumber: header.docketNumber };
    const found = [...judgeSuccession(header, this.#head), ...checkDocketText(header)];
    if (header.registerId !== this.registerId) {
      found.push(violation('REGISTER_ID_REQUIRED', 'The docket is of another register', 'registerId'));
    }
    demandNone(found, place);
    if (docketHash(header) !== header.hash) {
      throw faultOf([violation('HASH_MISMATCH', 'The hash does not recompute', 'hash')], place);
    }
    this.#open = { ...docket, leaves: [], controls: [], sizeBytes: 0 };
  }

  /** Takes the next transaction of the open docket: its exact record and payload bytes. Returns the record. */
  take(recordBytes: Uint8Array, payload: Uint8Array): SealedRecord {
    const docket = this.#openDocket();
    const { docketNumber, timestamp, transactionIds } = docket.header;
    const txId = transactionIds[docket.leaves.length];
    const place = { docketNumber, txId };
    const record = readRecord(recordBytes, place);
    if (record.txId !== txId || record.registerId !== this.registerId) {
      throw faultOf([validationViolation('VAL_STRUCT_002', 'record.txId')], place);
    }
    const requireBoundTxId = this.#rules?.policy.consensus.requireBoundTxId ?? false;
    const context = { docketNumber, timestamp, requireBoundTxId, addressOf: this.#addressOf };
    demandNone(
      [
        ...judgePayload(record, payload),
        ...judgeRecord(record, payload, context),
        ...judgePolicies(record, recordBytes.length, this.#rules),
      ],
      place,
    );
    const signed = record.signatures.every((each) =>
      verifyTransactionSignature(this.#verifier, record, each),
    );
    if (!signed) throw faultOf([validationViolation('VAL_SIG_002', 'record.signatures')], place);
    if (docketNumber === 0) this.#found(record, payload, place);
    if (record.type === 'Control') docket.controls.push(controlTransaction(record, payload));
    docket.leaves.push(recordLeaf(recordBytes));
    docket.sizeBytes += recordBytes.length;
    return record;
  }

  /** Ends the open docket; judges roots, set, certificate and votes, and applies its control transactions. */
  close(): DocketHeader {
    const docket = this.#openDocket();
    const { header, leaves, controls, sizeBytes } = docket;
    const place = { docketNumber: header.docketNumber };
    demandNone([...judgeHeader(header, leaves, this.#log), ...judgeSize(header, sizeBytes)], place);
    const { rules, networkId } = this;
    const members = activeMembers(rules);
    const { signatureThresholdMin } = rules.policy.consensus;
    demandNone(judgeLimits(header, rules.policy.consensus), place);
    demandNone(judgeSealing(docket, { members, signatureThresholdMin, networkId }, this.#verifier), place);
    demandNone(judgeAttestations(docket, members, this.#verifier), place);
    if (header.docketNumber > 0) this.#rules = this.#fold(header, controls);
    this.#log.append(logLeaf(header));
    this.#transactionCount += leaves.length;
    this.#head = header;
    this.#open = undefined;
    return header;
  }

  /** Judges the checkpoint of the last docket; returns the validators that cosigned it. */
  judgeCheckpoint(note: string): readonly string[] {
    const { registerId, networkId, rules, height: size, logRoot: rootHash } = this;
    const context = { registerId, networkId, rules, size, rootHash, verifier: this.#verifier };
    const judged = judgeCheckpoint(note, context);
    if (!('cosigners' in judged)) throw faultOf(judged);
    return judged.cosigners;
  }

  #openDocket(): OpenDocket {
    if (this.#open === undefined) throw faultOf([violation('DOCKET_MISSING', 'No docket is open')]);
    return this.#open;
  }

  /** Judges that docket 0 contains exactly the genesis, and founds the rules. */
  #found(record: SealedRecord, payload: Uint8Array, place: FaultLocation): void {
    const { header } = this.#openDocket();
    if (header.transactionIds.length !== 1) {
      throw faultOf([validationViolation('VAL_PERM_002', 'transactionIds')], place);
    }
    const genesis = readGenesis(record, payload, header.genesisConfig ?? '', this.#verifier);
    if (Array.isArray(genesis)) throw faultOf(genesis, place);
    this.#genesis = genesis;
    this.#rules = genesis.rules;
  }

  #fold(header: DocketHeader, controls: readonly ControlTransaction[]): LedgerRules {
    const { docketNumber, timestamp } = header;
    const verifier = this.#verifier;
    const fold = applyControls(this.rules, controls, { docketNumber, timestamp, verifier });
    if ('violations' in fold) throw faultOf(fold.violations, { docketNumber, txId: fold.txId });
    return fold.rules;
  }
}
