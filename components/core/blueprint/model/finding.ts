/** One thing that a check of a definition found. Errors prevent publication. */
export interface Finding {
  readonly severity: 'Error' | 'Warning';
  readonly code: string;
  /** For a person: what is wrong and what to do. */
  readonly message: string;
  /** JSON Pointer into the definition (RFC 6901). */
  readonly location: string;
}

/** A finding that prevents publication. */
export function errorAt(location: string, code: string, message: string): Finding {
  return { severity: 'Error', code, message, location };
}

/** A finding that does not prevent publication. */
export function warningAt(location: string, code: string, message: string): Finding {
  return { severity: 'Warning', code, message, location };
}
