import { sha256Hex } from '#core/crypto/hash.ts';
import { canonicalJson } from '#core/encoding/jcs.ts';
import { type ControlRecord, genesisEnvelope } from '#core/ledger/control-record.ts';
import { boundTxId, type TransactionEnvelope } from '#core/ledger/transaction.ts';

/** A key of the wallet service that signs control transactions. */
interface SystemKey {
  readonly publicKey: string;
  readonly algorithm: string;
  readonly walletAddress: string;
}

/** The genesis transaction of a register until its docket is sealed, without the signature. */
export interface GenesisWork {
  readonly registerId: string;
  readonly txId: string;
  readonly envelope: TransactionEnvelope;
  /** canonical JSON of the control record */
  readonly payloadText: string;
  /** base64; absent until the wallet service has signed */
  readonly signatureValue?: string | undefined;
  readonly systemKey: SystemKey;
}

interface GenesisFacts {
  readonly record: ControlRecord;
  readonly organizationId: string;
  readonly systemKey: SystemKey;
}

/** The genesis transaction of a register. Its id is derived, so the same facts give the same transaction. */
export function buildGenesis({ record, organizationId, systemKey }: GenesisFacts): GenesisWork {
  const payloadText = canonicalJson(record);
  const envelope = genesisEnvelope({
    record,
    payloadHash: sha256Hex(payloadText),
    organizationId,
    systemWalletAddress: systemKey.walletAddress,
    createdAt: record.createdAt,
  });
  const txId = boundTxId(envelope, [systemKey.publicKey]);
  return { registerId: record.registerId, txId, envelope, payloadText, systemKey };
}
