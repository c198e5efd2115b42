/** Why a document is refused: it is no trust list, or its signature does not hold. */
export type ListFaultKind = 'malformed' | 'signature';

/** A fault of a document. The text names the rule, and no content of the document. */
export class ListFault extends Error {
  readonly kind: ListFaultKind;

  constructor(kind: ListFaultKind, message: string) {
    super(message);
    this.name = 'ListFault';
    this.kind = kind;
  }
}

export function malformed(message: string): ListFault {
  return new ListFault('malformed', message);
}

export function badSignature(message: string): ListFault {
  return new ListFault('signature', message);
}
