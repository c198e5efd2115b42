import { buildPublication, PUBLISH_ACTION } from '../../../blueprint/publication.ts';
import { encodeBase64 } from '../../../encoding/base64.ts';
import { encodeHex } from '../../../encoding/hex.ts';
import { canonicalBytes } from '../../../encoding/jcs.ts';
import type { JsonObject } from '../../../encoding/json.ts';
import { utf8 } from '../../../encoding/text.ts';
import { type ConsensusVote, voteBytes } from '../../attestation.ts';
import type { Certificate } from '../../certificate.ts';
import {
  checkpointBody,
  checkpointNote,
  cosignatureBlob,
  cosignatureBytes,
  noteLine,
} from '../../checkpoint.ts';
import { CONSENSUS_TYPES, quorum, signBytes, validatorSetHash } from '../../consensus.ts';
import {
  type ControlRecord,
  defaultCryptoPolicy,
  genesisConfigText,
  genesisEnvelope,
} from '../../control-record.ts';
import { buildHeader, type DocketHeader } from '../../docket.ts';
import { writeCheckpoint, writeDocket, writeHeader, writeTransaction } from '../../export/lines.ts';
import { activeMembers, genesisRules } from '../../governance/rules.ts';
import {
  at,
  entryOf,
  keyOfValidator,
  owner,
  type Person,
  registerId,
  system,
} from '../../governance/testing/scene.ts';
import { logLeaf } from '../../log.ts';
import { Frontier } from '../../merkle.ts';
import { attestationBytes, attestationDigest } from '../../owner-attestation.ts';
import { parsePolicy } from '../../policy.ts';
import { buildRecord, recordBytes, recordLeaf } from '../../record.ts';
import { ZERO_HASH } from '../../register-id.ts';
import { boundTxId, payloadHash, signingDigest, type TransactionEnvelope } from '../../transaction.ts';
import type { SealedDocket } from '../chain.ts';
import { checkpointKey, cosignerKeys } from '../head-checkpoint.ts';

export const networkId = 'test.installation';

/** Exact bytes of a sealed transaction. */
export interface SealedBytes {
  readonly txId: string;
  readonly record: Uint8Array;
  readonly payload: Uint8Array;
}

/** A transaction that its sender signed. */
export function sealTransaction(
  sender: Person,
  payload: unknown,
  envelope: Omit<TransactionEnvelope, 'registerId' | 'payloadHash'>,
): SealedBytes {
  const full = { ...envelope, registerId, payloadHash: payloadHash(payload) };
  return sealBytes(sender, payload, full, boundTxId(full, [sender.key.publicKey]));
}

/** The transaction that publishes a definition: its id is that of the content. */
export function sealPublication(
  sender: Person,
  definition: JsonObject & { readonly id: string },
  createdAt: string,
): SealedBytes {
  const { txId, payload, metadata, blueprintId } = buildPublication(registerId, definition, sender.did);
  const envelope = { type: 'Control', blueprintId, actionId: PUBLISH_ACTION, createdAt, metadata } as const;
  return sealBytes(sender, payload, { ...envelope, registerId, payloadHash: payloadHash(payload) }, txId);
}

function sealBytes(
  sender: Person,
  payload: unknown,
  envelope: TransactionEnvelope,
  txId: string,
): SealedBytes {
  const { publicKey, algorithm } = sender.key;
  const signature = sender.signer.signDigest(signingDigest(txId, envelope.payloadHash));
  const bytes = canonicalBytes(payload);
  const record = buildRecord({
    envelope,
    txId,
    payloadSize: bytes.length,
    senderAddress: sender.address,
    signatures: [{ publicKey, signatureValue: encodeBase64(signature), algorithm }],
    bound: txId === boundTxId(envelope, [publicKey]),
  });
  return { txId, record: recordBytes(record), payload: bytes };
}

function controlRecordOf(validators: number): ControlRecord {
  const facts = { role: 'Owner', subject: owner.did, grantedAt: at(0) } as const;
  const data = attestationBytes({ ...facts, registerId, registerName: 'Loans' });
  const signature = encodeBase64(owner.signer.signDigest(attestationDigest(data)));
  const entries = Array.from({ length: validators }, (_, index) => ({
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
    attestations: [{ ...facts, ...owner.key, signature }],
    cryptoPolicy: defaultCryptoPolicy(at(0), false),
    registerPolicy: parsePolicy({}),
    validators: { validators: entries, requiredSignatures: quorum(validators), version: 1 },
  };
}

/** A register that grows by whole dockets, sealed by all its validators, and the text of its export. */
export class SealedRegister {
  readonly dockets: { readonly docket: SealedDocket; readonly transactions: readonly SealedBytes[] }[] = [];
  readonly #control: ControlRecord;
  readonly #log = Frontier.empty();
  readonly #validators: number;

  constructor(validators = 1) {
    this.#validators = validators;
    this.#control = controlRecordOf(validators);
    const record = this.#control;
    const facts = { record, payloadHash: payloadHash(record), organizationId: 'o', createdAt: at(0) };
    const envelope = genesisEnvelope({ ...facts, systemWalletAddress: system.address });
    this.seal(sealTransaction(system, record, envelope));
  }

  get #rules() {
    return genesisRules(this.#control, system.key);
  }

  /** Seals these transactions in the next docket. */
  seal(...transactions: readonly SealedBytes[]): SealedDocket {
    const last = this.dockets.at(-1)?.docket.header;
    const docketNumber = this.#log.size;
    const header = buildHeader(
      {
        registerId,
        docketNumber,
        previousHash: last?.hash ?? ZERO_HASH,
        timestamp: at(docketNumber * 60),
        validatorAddress: keyOfValidator(0).address,
        transactionIds: transactions.map(({ txId }) => txId),
        validatorSetHash: validatorSetHash(activeMembers(this.#rules)),
        sizeBytes: transactions.reduce((sum, { record }) => sum + record.length, 0),
        genesisConfig: docketNumber === 0 ? genesisConfigText(this.#control, networkId) : undefined,
      },
      transactions.map(({ record }) => recordLeaf(record)),
      this.#log,
    );
    const docket = { header, certificate: this.#certify(header), attestations: [this.#attest(header)] };
    this.#log.append(logLeaf(header));
    this.dockets.push({ docket, transactions });
    return docket;
  }

  /** The signed checkpoint, cosigned by every validator. */
  checkpoint(): string {
    const context = { networkId, registerId, rules: this.#rules };
    const log = checkpointKey(context);
    const body = checkpointBody({ origin: log.name, size: this.#log.size, rootHash: this.#log.root() });
    const keys = [...cosignerKeys(networkId, activeMembers(this.#rules)).values()];
    const cosigned = keys.map((key, index) => {
      const signature = keyOfValidator(index).signer.sign(cosignatureBytes(body, 1_795_255_300));
      return noteLine(key, cosignatureBlob(1_795_255_300, signature));
    });
    return checkpointNote(body, [noteLine(log, system.signer.sign(utf8(body))), ...cosigned]);
  }

  /** Lines of the export. */
  lines(): string[] {
    const count = this.dockets.reduce((sum, { transactions }) => sum + transactions.length, 0);
    return [
      writeHeader({ registerId, dockets: this.dockets.length }),
      ...this.dockets.flatMap(({ docket, transactions }) => [
        writeDocket(docket),
        ...transactions.map(({ record, payload }) => writeTransaction(record, payload)),
      ]),
      writeCheckpoint(this.checkpoint(), count),
    ];
  }

  #certify(header: DocketHeader): Certificate {
    const { hash: docketHash, merkleRoot, logRoot, validatorSetHash: set, timestamp } = header;
    const message = signBytes({
      type: CONSENSUS_TYPES.precommit,
      networkId,
      registerId,
      height: header.docketNumber,
      round: 0,
      polRound: -1,
      docket: { docketHash, merkleRoot, logRoot },
      validatorSetHash: set,
      timestamp,
    });
    const signatures = Array.from({ length: this.#validators }, (_, index) => ({
      validatorId: `validator-${index}`,
      index,
      timestamp,
      signature: encodeBase64(keyOfValidator(index).signer.sign(message)),
    }));
    const { docketNumber: height } = header;
    return {
      version: 1,
      height,
      round: 0,
      docketHash,
      merkleRoot,
      logRoot,
      validatorSetHash: set,
      signatures,
    };
  }

  #attest({ hash: docketHash, timestamp }: DocketHeader): ConsensusVote {
    const { signer, address: validatorAddress, key } = keyOfValidator(0);
    const facts = { docketHash, validatorAddress, approved: true, timestamp };
    const signature = encodeHex(signer.sign(voteBytes(facts)));
    return { ...facts, signature, validatorId: 'validator-0', ...key };
  }
}
