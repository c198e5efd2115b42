import { AppError, isAppError, type Violation } from '../../errors/errors.ts';

/** Place of a fault in a register. */
export interface FaultLocation {
  readonly docketNumber?: number | undefined;
  readonly txId?: string | undefined;
}

function hasLocation(details: Readonly<Record<string, unknown>>): details is Readonly<
  Record<string, unknown>
> & {
  readonly place: FaultLocation;
} {
  return typeof details['place'] === 'object' && details['place'] !== null;
}

/** The refusal of a register that does not verify: code and text of the first violation, and its place. */
export function faultOf(violations: readonly Violation[], place: FaultLocation = {}): AppError {
  const [first] = violations;
  const code = first?.code ?? 'VERIFICATION_FAILED';
  const text = first === undefined ? 'Does not verify' : first.message;
  const field = first?.field === undefined ? '' : ` (${first.field})`;
  return new AppError('unprocessable', code, `${text.replace(/\.$/, '')}${field}`, {
    violations,
    details: { place },
  });
}

/** Ends verification when there is a violation. */
export function demandNone(violations: readonly Violation[], place: FaultLocation): void {
  if (violations.length > 0) throw faultOf(violations, place);
}

/** Finds the place of a fault; undefined for any other error. */
export function findFaultLocation(error: unknown): FaultLocation | undefined {
  if (!isAppError(error, 'unprocessable') || error.details === undefined) return undefined;
  return hasLocation(error.details) ? error.details.place : undefined;
}
