import { decodeBase64Any } from '#core/encoding/base64.ts';
import { decodeHex } from '#core/encoding/hex.ts';
import type { DocketBundle } from '../ledger/dockets/docket.ts';

/** A vote as a protobuf message. */
export function wireVote(vote: DocketBundle['attestations'][number]) {
  return { ...vote, signature: decodeHex(vote.signature), reason: vote.reason ?? '' };
}

/** A docket as a `WriteDocketRequest`. */
export function wireDocket({ header, certificate, transactions, attestations }: DocketBundle) {
  return {
    header: {
      ...header,
      transactionIds: [...header.transactionIds],
      docketNumber: BigInt(header.docketNumber),
      sizeBytes: BigInt(header.sizeBytes),
      genesisConfig: header.genesisConfig ?? '',
    },
    certificate: {
      ...certificate,
      height: BigInt(certificate.height),
      signatures: certificate.signatures.map((one) => ({
        ...one,
        signature: decodeBase64Any(one.signature),
      })),
    },
    transactions: [...transactions],
    attestations: attestations.map(wireVote),
  };
}
