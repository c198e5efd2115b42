import { describe, expect, it } from 'vitest';
import { isSubject, SUBJECTS } from '../events/subjects.ts';
import { AppError, type ErrorKind, genericCode, isAppError, violation } from './errors.ts';
import {
  isValidationCode,
  VALIDATION_CODES,
  validationError,
  validationViolation,
} from './validation-codes.ts';

describe('AppError', () => {
  it('carries the given members and nothing else', () => {
    const cause = new Error('inner');
    const error = new AppError('conflict', 'TX_CONFLICT', 'Another record has that id', {
      cause,
      details: { txId: 'a' },
      retryAfterSeconds: 3,
      violations: [violation('X', 'm', 'f')],
    });
    expect(error).toMatchObject({
      name: 'AppError',
      kind: 'conflict',
      code: 'TX_CONFLICT',
      details: { txId: 'a' },
      retryAfterSeconds: 3,
      violations: [{ code: 'X', message: 'm', field: 'f', severity: 'Error' }],
    });
    expect(error.cause).toBe(cause);
    expect(isAppError(error) && isAppError(error, 'conflict') && !isAppError(error, 'gone')).toBe(true);
    const plain = new AppError('gone', 'GONE', 'm');
    expect(
      [plain.cause, plain.details, plain.retryAfterSeconds, plain.violations].filter(
        (each) => each !== undefined,
      ),
    ).toEqual([]);
    expect(isAppError(cause)).toBe(false);
    expect(violation('X', 'm')).toEqual({ code: 'X', message: 'm', severity: 'Error' });
  });

  it('kinds have the generic codes of the specification', () => {
    const kinds: ErrorKind[] = [
      'invalid',
      'unauthenticated',
      'forbidden',
      'not_found',
      'conflict',
      'rate_limited',
      'internal',
      'unavailable',
    ];
    expect(kinds.map(genericCode)).toEqual([
      'INVALID_REQUEST',
      'UNAUTHORIZED',
      'FORBIDDEN',
      'NOT_FOUND',
      'CONFLICT',
      'RATE_LIMITED',
      'INTERNAL_ERROR',
      'SERVICE_UNAVAILABLE',
    ]);
  });
});

describe('validation codes', () => {
  const entries = Object.entries(VALIDATION_CODES);

  it('are named by family and number, each with a meaning of its own', () => {
    expect(entries.length).toBeGreaterThan(50);
    for (const [name] of entries) expect(name).toMatch(/^VAL_[A-Z]+_([A-Z]+_)?(\d{3}|FORK|TRANSIENT)$/);
    const meanings = entries.map(([, { meaning }]) => meaning);
    expect(new Set(meanings).size).toBe(meanings.length);
  });

  it.each([
    ['VAL_HASH_001', 400],
    ['VAL_SIG_002', 400],
    ['VAL_TIME_001', 400],
    ['VAL_TIME_003', 400],
    ['VAL_CHAIN_001', 422],
    ['VAL_CHAIN_FORK', 422],
    ['VAL_PERM_001', 403],
    ['VAL_PERM_005', 422],
    ['VAL_PERM_006', 422],
    ['VAL_PERM_008', 403],
    ['VAL_PERM_009', 422],
    ['VAL_PERM_010', 403],
    ['VAL_PERM_011', 422],
    ['VAL_POLICY_003', 422],
    ['VAL_BP_VERSION_001', 422],
    ['VAL_STRUCT_012', 400],
    ['VAL_SIZE_001', 413],
    ['VAL_CERT_003', 422],
  ] as const)('%s answers %i', (name, status) => {
    expect(VALIDATION_CODES[name].status).toBe(status);
  });

  it('become the refusal of the first violation', () => {
    const findings = [validationViolation('VAL_PERM_001', 'signatures'), validationViolation('VAL_HASH_001')];
    expect(validationError(findings)).toMatchObject({
      kind: 'forbidden',
      code: 'VAL_PERM_001',
      violations: findings,
    });
    expect(validationError([violation('HASH_MISMATCH', 'm')])).toMatchObject({
      kind: 'invalid',
      code: 'HASH_MISMATCH',
    });
    expect(validationError([])).toMatchObject({ kind: 'internal' });
    expect(validationViolation('VAL_HASH_001', 'payload', 'nearer').message).toBe('nearer');
    expect(isValidationCode('toString')).toBe(false);
  });
});

describe('subjects', () => {
  it('are wake signals, each with a name of its own', () => {
    const subjects = Object.values(SUBJECTS);
    expect(new Set(subjects).size).toBe(subjects.length);
    for (const subject of subjects) expect(subject).toMatch(/^doorbell\.[a-z]+\.[a-z]+$/);
    expect(isSubject('doorbell.tenant.revocations')).toBe(true);
    expect(isSubject('doorbell.>')).toBe(false);
  });
});
