import { createHmac } from 'node:crypto';
import type { Subject } from './subject.ts';

/**
 * Records of addresses without an account. Their number is fixed, and a keyed hash maps each address to one of them, so
 * that a flood of addresses can neither grow the tables, displace a record nor learn which addresses share one.
 */
export const unknownRecords = 8_192;
/** Number of audit events per hour in which such failures are counted. */
export const unknownAuditLanes = 8;

/** The record of an address that has no account. */
export type FindUnknown = (email: string) => Subject;

export function createUnknownAddresses(key: Uint8Array): FindUnknown {
  return (email) => {
    const hash = createHmac('sha256', key).update('chancery unknown address v1').update(email).digest();
    return recordOf(hash.readUInt32BE() % unknownRecords);
  };
}

/** A custom UUID (RFC 9562 section 5.8): never one of an account, which are time-ordered. */
function recordOf(number: number): Subject {
  return { kind: 'unknown', id: `00000000-0000-8000-8000-${number.toString(16).padStart(12, '0')}` };
}

/** Failures of the same hour and lane are one audit event. */
export function auditKeyOf(subject: Subject, nowMs: number): string {
  const lane = Number.parseInt(subject.id.slice(-8), 16) % unknownAuditLanes;
  return JSON.stringify(['unknown-address', lane, Math.floor(nowMs / 3_600_000)]);
}
