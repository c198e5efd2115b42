import { encodeHex } from '#core/encoding/hex.ts';
import { memberDid } from '#core/ledger/did.ts';
import {
  type AttestationData,
  attestationBytes,
  attestationDigest,
  type RosterRole,
} from '#core/ledger/owner-attestation.ts';

/** A key that a wallet derives for a context. */
export interface DerivedFrom {
  readonly walletAddress: string;
  readonly derivationContext: string;
}

export interface RequestedAttestation {
  /** of the key that attests: it is the subject's */
  readonly walletAddress: string;
  /** set when the key is not the wallet's own, as for wallets of organisations */
  readonly derivedFrom?: DerivedFrom | undefined;
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

/** Who shall be in the roster, by the key that attests. */
export interface RosterWish {
  readonly walletAddress: string;
  readonly derivedFrom?: DerivedFrom | undefined;
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
    derivedFrom: wish.derivedFrom,
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

/** `walletId` names the wallet to sign with; `derivationPath` says with which of its keys, unless with its own. */
export function presentAttestation(requested: RequestedAttestation) {
  const { derivedFrom } = requested;
  return {
    ...(requested.userId !== undefined && { userId: requested.userId }),
    walletId: derivedFrom?.walletAddress ?? requested.walletAddress,
    ...(derivedFrom !== undefined && { derivationPath: derivedFrom.derivationContext }),
    walletAddress: requested.walletAddress,
    role: requested.data.role,
    attestationData: requested.data,
    dataToSign: encodeHex(attestationDigest(attestationBytes(requested.data))),
  };
}
