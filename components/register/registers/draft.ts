import { encodeHex } from '#core/encoding/hex.ts';
import { memberDid } from '#core/ledger/did.ts';
import {
  type AttestationData,
  attestationBytes,
  attestationDigest,
  type RosterRole,
} from '#core/ledger/owner-attestation.ts';

export interface RequestedAttestation {
  readonly walletAddress: string;
  readonly userId: string | undefined;
  readonly data: AttestationData;
}

/** A register between initiate and finalize, as it waits in the database. */
export interface Draft {
  readonly registerId: string;
  readonly title: string;
  readonly description: string | undefined;
  readonly purpose: 'General' | 'System';
  readonly devMode: boolean;
  readonly advertise: boolean;
  readonly metadata: Readonly<Record<string, string>>;
  /** register policy as JSON text */
  readonly policyText: string;
  readonly attestations: readonly RequestedAttestation[];
}

export interface RosterWish {
  readonly walletAddress: string;
  readonly userId?: string | undefined;
  readonly role: RosterRole;
}

/** The attestations that a new register asks for, owners first. */
export function requestAttestations(
  register: { readonly registerId: string; readonly title: string; readonly grantedAt: string },
  wishes: readonly RosterWish[],
): RequestedAttestation[] {
  return wishes.map((wish) => ({
    walletAddress: wish.walletAddress,
    userId: wish.userId,
    data: {
      role: wish.role,
      subject: memberDid(wish.walletAddress),
      registerId: register.registerId,
      registerName: register.title,
      grantedAt: register.grantedAt,
    },
  }));
}

export function presentAttestation(requested: RequestedAttestation) {
  return {
    ...(requested.userId !== undefined && { userId: requested.userId }),
    walletId: requested.walletAddress,
    walletAddress: requested.walletAddress,
    role: requested.data.role,
    attestationData: requested.data,
    dataToSign: encodeHex(attestationDigest(attestationBytes(requested.data))),
  };
}
