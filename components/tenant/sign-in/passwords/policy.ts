import type { BreachedPasswords } from './breached.ts';
import { readCommonPasswords } from './common-passwords.ts';

type PasswordFault = 'too_short' | 'too_long' | 'breached' | 'contextual';

const maxPasswordLength = 256;

/** Words from the account: local part of the e-mail address, display name, organisation name, subdomain. */
interface PasswordContext {
  readonly words: readonly string[];
}

export interface PasswordPolicy {
  /** Violations of the policy: length and blocklists, without composition rules (NIST SP 800-63B-4). */
  judge(password: string, context: PasswordContext): Promise<readonly PasswordFault[]>;
}

/** Maximum length of the rest around a listed word that counts as decoration. */
const maxDecoration = 8;

/** @param breached asked about passwords that are otherwise without fault */
export function createPasswordPolicy(minLength: number, breached?: BreachedPasswords): PasswordPolicy {
  const listed = readCommonPasswords();
  return {
    async judge(password, context) {
      const text = normalizePassword(password);
      const faults = judgeText(text, { minLength, listed, context });
      if (faults.length > 0 || breached === undefined) return faults;
      return (await breached.isBreached(text)) ? ['breached'] : [];
    },
  };
}

interface Rules {
  readonly minLength: number;
  readonly listed: ReadonlySet<string>;
  readonly context: PasswordContext;
}

function judgeText(text: string, { minLength, listed, context }: Rules): PasswordFault[] {
  const length = [...text].length;
  const faults: PasswordFault[] = [];
  if (length < minLength) faults.push('too_short');
  if (length > maxPasswordLength) return [...faults, 'too_long'];
  if (isCommon(text, listed)) faults.push('breached');
  if (isContextual(text, context)) faults.push('contextual');
  return faults;
}

/** Normalises to NFC, so that the same text from different keyboards is the same password. */
export function normalizePassword(password: string): string {
  return password.normalize('NFC');
}

function isCommon(text: string, listed: ReadonlySet<string>): boolean {
  const lower = text.toLowerCase();
  const plain = undecorated(lower);
  const candidates = [lower, plain, unleet(lower), undecorated(unleet(lower)), unleet(plain)];
  return candidates.some((one) => listed.has(one) || isRepeated(one, listed)) || isMonotonous(lower);
}

/** Strips decoration: "Password2024!" is as guessable as "password". */
function undecorated(text: string): string {
  const core = text.replace(/^[^\p{L}]+|[^\p{L}]+$/gu, '');
  return text.length - core.length <= maxDecoration ? core : text;
}

const leet: Readonly<Record<string, string>> = {
  '0': 'o',
  '1': 'i',
  '3': 'e',
  '4': 'a',
  '5': 's',
  '7': 't',
  '@': 'a',
  $: 's',
  '!': 'i',
};

function unleet(text: string): string {
  return text.replace(/[013457@$!]/g, (one) => leet[one] ?? one);
}

/** Whether the text repeats a listed word or one short sequence. */
function isRepeated(text: string, listed: ReadonlySet<string>): boolean {
  for (let size = 1; size <= text.length / 2; size++) {
    if (text.length % size !== 0) continue;
    const unit = text.slice(0, size);
    if (unit.repeat(text.length / size) === text) return size <= 4 || listed.has(unit);
  }
  return false;
}

const runs = [
  'abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz',
  '01234567890123456789012345678901234567890',
  'qwertyuiopasdfghjklzxcvbnm',
  'qwertzuiopasdfghjklyxcvbnm',
  'azertyuiopqsdfghjklmwxcvbn',
  '1q2w3e4r5t6y7u8i9o0p',
  '1qaz2wsx3edc4rfv5tgb6yhn7ujm8ik',
  'qazwsxedcrfvtgbyhnujmikolp',
];

function isMonotonous(text: string): boolean {
  if (text.length < 4) return false;
  return runs.some((run) => run.includes(text) || [...run].reverse().join('').includes(text));
}

function isContextual(text: string, context: PasswordContext): boolean {
  const core = undecorated(unleet(text.toLowerCase())).replace(/[^\p{L}\p{N}]/gu, '');
  const lower = text.toLowerCase().replace(/[^\p{L}\p{N}]/gu, '');
  return ['platform', 'chancery', ...context.words].some((word) => {
    const plain = word.toLowerCase().replace(/[^\p{L}\p{N}]/gu, '');
    if (plain.length < 4) return false;
    return [core, lower].some((one) => one.includes(plain) && one.length - plain.length <= maxDecoration);
  });
}
