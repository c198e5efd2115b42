/** A service of a list: only issuing services that the scheme has granted make anchors. */
export interface ListedService {
  /** URI of its type. */
  readonly type: string;
  /** URI of its status; absent where the scheme gives none. */
  readonly status: string | undefined;
  /** Its type is one of those whose certificates issue. */
  readonly issues: boolean;
  readonly isGranted: boolean;
  /** Certificates of its identity, base64 of DER, as the list has them. */
  readonly certificates: readonly string[];
}

/** The content of a list, read from the bytes that its signature covers. */
export interface ListContent {
  readonly format: 'xml' | 'jws';
  readonly sequenceNumber: number;
  readonly schemeTerritory: string | undefined;
  readonly schemeOperatorName: string;
  readonly listIssueAtMs: number;
  /** Absent in a list that will not be updated. */
  readonly nextUpdateAtMs: number | undefined;
  readonly services: readonly ListedService[];
}

/** A certificate that chains may end at. */
export interface Anchor {
  readonly der: Uint8Array;
  /** SHA-256 of the DER, hex. */
  readonly thumbprint: string;
  readonly subjectDn: string;
  readonly serviceType: string;
  readonly serviceStatus: string | undefined;
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
}

/** What made no anchor: `type` and `status` count services, the others certificates. */
export interface Skipped {
  readonly type: number;
  readonly status: number;
  readonly expired: number;
  readonly notCa: number;
  readonly unparsable: number;
}

/** The certificate whose key verified the signature of a list. */
export interface Signer {
  readonly subjectDn: string;
  /** SHA-256 of the DER, hex. */
  readonly thumbprint: string;
}

/** A verified list. */
export interface ReadList extends Omit<ListContent, 'services'> {
  readonly signer: Signer;
  readonly anchors: readonly Anchor[];
  /** Certificates taken, equal ones counted each. */
  readonly extracted: number;
  readonly skipped: Skipped;
  /** SHA-256 of the document, hex. */
  readonly documentSha256: string;
}
