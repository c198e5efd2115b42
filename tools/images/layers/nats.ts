import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { AppError } from '#core/errors/errors.ts';
import type { TarEntry } from '../oci/tar.ts';
import type { Architecture } from './debian.ts';
import { fileEntry } from './tree.ts';

export const natsVersion = '2.15.2';

/**
 * The static binary of nats-server, built from its module by Go.
 *
 * @throws AppError unavailable IMAGES_NATS without Go or when the build fails
 */
export function natsEntries(folder: string, architecture: Architecture): TarEntry[] {
  const place = join(folder, `nats-server-${natsVersion}-${architecture}`);
  const binary = join(place, 'nats-server');
  if (!existsSync(binary)) buildServer(place, architecture);
  return [fileEntry('usr/bin/nats-server', readFileSync(binary), true)];
}

function buildServer(place: string, architecture: Architecture): void {
  mkdirSync(place, { recursive: true });
  const module = `github.com/nats-io/nats-server/v2@v${natsVersion}`;
  const env = { CGO_ENABLED: '0', GOBIN: place, GOARCH: architecture, GOFLAGS: '-trimpath' };
  try {
    execFileSync(
      'env',
      [...Object.entries(env).map((pair) => pair.join('=')), 'go', 'install', '-ldflags=-s -w', module],
      {
        stdio: 'pipe',
        encoding: 'utf8',
      },
    );
  } catch (cause) {
    const text = cause instanceof Error ? cause.message.trim() : 'unknown reason';
    const message = `nats-server ${natsVersion} is built by Go 1.25 or later, which failed: ${text}`;
    throw new AppError('unavailable', 'IMAGES_NATS', message, { cause });
  }
}
