import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { AppError, isAppError } from '#core/errors/errors.ts';
import type { Clock } from '#kit/clock/clock.ts';
import { type Authority, loadAuthority, makeAuthority } from '../authority/authority.ts';

const authorityLifeMs = 10 * 365 * 86_400_000;
const authorityRenewalMs = 60 * 86_400_000;

/**
 * Loads the P-256 authority of a directory. Creates it at the first start and when less than 60 days of its validity
 * are left. Files: `ca.key` (PKCS#8 PEM, mode 0600) and `ca.crt`.
 *
 * Errors: conflict/ISSUER_TRUST_DOMAIN when the directory belongs to another trust domain.
 */
export async function openAuthority(dir: string, trustDomain: string, clock: Clock): Promise<Authority> {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const keyPath = join(dir, 'ca.key');
  const certificatePath = join(dir, 'ca.crt');
  if (existsSync(keyPath) && existsSync(certificatePath)) {
    chmodSync(keyPath, 0o600);
    const kept = await load(dir, trustDomain);
    if (kept.notAfterMs - clock.nowMs() > authorityRenewalMs) return kept;
  }
  const made = await makeAuthority(trustDomain, clock, authorityLifeMs);
  writeAtomically(keyPath, made.keyPem, 0o600);
  writeAtomically(certificatePath, made.certificatePem, 0o644);
  return await loadAuthority(made, trustDomain);
}

async function load(dir: string, trustDomain: string): Promise<Authority> {
  const keyPem = readFileSync(join(dir, 'ca.key'), 'utf8');
  const certificatePem = readFileSync(join(dir, 'ca.crt'), 'utf8');
  try {
    return await loadAuthority({ certificatePem, keyPem }, trustDomain);
  } catch (cause) {
    if (!isAppError(cause, 'conflict')) throw cause;
    throw new AppError('conflict', cause.code, `${dir}: ${cause.message}`, { cause });
  }
}

/** Writes a new file and renames it, so that an interrupted first start leaves no partial key. */
function writeAtomically(path: string, text: string, mode: number): void {
  const part = `${path}.${process.pid}`;
  writeFileSync(part, text, { mode, flush: true });
  chmodSync(part, mode);
  renameSync(part, path);
}
