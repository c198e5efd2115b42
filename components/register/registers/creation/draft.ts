import type { z } from 'zod';
import { encodeHex } from '#core/encoding/hex.ts';
import { memberDid } from '#core/ledger/did.ts';
import {
  type AttestationData,
  attestationBytes,
  attestationDigest,
  type RosterRole,
} from '#core/ledger/owner-attestation.ts';
import type { requestedAttestationSchema } from './schemas.ts';

/** A key that a wallet derives for a context. */
interface DerivedFrom {
  readonly walletAddress: string;
  readonly derivationContext: string;
}

export interface RequestedAttestation {
  /** of the attesting key: the address of the subject */
  readonly walletAddress: string;
  /** set when the key is not the wallet's own, as for wallets of organisations */
  readonly derivedFrom?: DerivedFrom | undefined;
  readonly userId: string | undefined;
  readonly data: AttestationData;
}

/** A register between initiate and finalize, as the database holds it. */
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

/** A member to be in the roster, with the key that attests for it. */
export interface RequestedMember {
  readonly walletAddress: string;
  readonly derivedFrom?: DerivedFrom | undefined;
  readonly userId?: string | undefined;
  readonly role: RosterRole;
}

/** The attestations that a new register requires, owners first. */
export function requestAttestations(
  register: { readonly registerId: string; readonly title: string; readonly grantedAt: string },
  members: readonly RequestedMember[],
): RequestedAttestation[] {
  return members.map((member) => ({
    walletAddress: member.walletAddress,
    derivedFrom: member.derivedFrom,
    userId: member.userId,
    data: {
      role: member.role,
      subject: memberDid(member.walletAddress),
      registerId: register.registerId,
      registerName: register.title,
      grantedAt: register.grantedAt,
    },
  }));
}

/** `walletId` names the wallet to sign with; `derivationPath` names its key, if it is not the wallet's own. */
export function presentAttestation(
  requested: RequestedAttestation,
): z.output<typeof requestedAttestationSchema> {
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
