import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { describe, expect, it, onTestFinished } from 'vitest';
import { z } from 'zod';
import {
  ConfigError,
  commonSettings,
  databaseSettings,
  describeSettings,
  endpoint,
  flag,
  loadConfig,
  port,
  Secret,
  secretFile,
} from './config.ts';

const required = {
  CHANCERY_INSTALLATION: 'test.local',
  SPIFFE_ENDPOINT_SOCKET: 'unix:/run/spiffe.sock',
  NATS_URL: 'nats://127.0.0.1:4222',
};

function issuesOf(act: () => unknown): readonly string[] {
  try {
    act();
  } catch (error) {
    if (error instanceof ConfigError) {
      return error.issues.map((issue) => `${issue.name}: ${issue.message}`);
    }
    throw error;
  }
  return [];
}

function secretAt(content: string): string {
  const directory = mkdtempSync(join(tmpdir(), 'chy-config-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const path = join(directory, 'secret');
  writeFileSync(path, content);
  return path;
}

describe('loadConfig', () => {
  it('takes a DNS name in lower case as the name of an installation', () => {
    const name = commonSettings.CHANCERY_INSTALLATION;
    expect(name.safeParse('dev-local').success).toBe(true);
    expect(name.safeParse('Dev').success).toBe(false);
  });

  it('reads the common settings with their defaults', () => {
    const config = loadConfig(z.object(commonSettings), required);
    expect(config).toEqual({
      ...required,
      CHANCERY_LISTEN_HOST: '0.0.0.0',
      CHANCERY_OPS_PORT: 9090,
      CHANCERY_HTTPS_PORT: 7443,
      CHANCERY_GRPC_PORT: 7000,
      CHANCERY_LOG_LEVEL: 'info',
      CHANCERY_RATE_LIMIT_PROFILE: 'production',
      CHANCERY_IDENTITY_TOKEN_FILE: '/var/run/chancery/identity/token',
      CHANCERY_IDENTITY_CA_FILE: '/var/run/chancery/identity/ca.crt',
    });
  });

  it('accepts exactly one source of identity', () => {
    const { SPIFFE_ENDPOINT_SOCKET: _socket, ...without } = required;
    const schema = z.object(commonSettings);
    const issuer = { CHANCERY_IDENTITY_ISSUER: 'https://svid-issuer:8443' };
    expect(issuesOf(() => loadConfig(schema, without))).toEqual([
      'SPIFFE_ENDPOINT_SOCKET: required, unless CHANCERY_IDENTITY_ISSUER is set',
    ]);
    expect(issuesOf(() => loadConfig(schema, { ...required, ...issuer }))).toEqual([
      'SPIFFE_ENDPOINT_SOCKET: set this or CHANCERY_IDENTITY_ISSUER, not both',
    ]);
    expect(loadConfig(schema, { ...without, ...issuer })).toMatchObject(issuer);
    expect(loadConfig(z.object({}), {})).toEqual({});
  });

  it.each(['http://svid-issuer:8443', 'svid-issuer:8443', 'https://u:p@host:1', 'https://host:1/path'])(
    'refuses the issuer %s',
    (url) => {
      const { SPIFFE_ENDPOINT_SOCKET: _socket, ...without } = required;
      const act = () => loadConfig(z.object(commonSettings), { ...without, CHANCERY_IDENTITY_ISSUER: url });
      expect(issuesOf(act)).toEqual(['CHANCERY_IDENTITY_ISSUER: expected https://host:port']);
    },
  );

  it('lists every fault, not only the first', () => {
    const env = { CHANCERY_OPS_PORT: '70000', CHANCERY_LOG_LEVEL: 'loud', CHANCERY_COLOUR: 'red' };
    const issues = issuesOf(() => loadConfig(z.object(commonSettings), env));
    const names = issues.map((issue) => issue.split(':')[0]).sort();
    expect(names).toEqual([
      'CHANCERY_COLOUR',
      'CHANCERY_INSTALLATION',
      'CHANCERY_LOG_LEVEL',
      'CHANCERY_OPS_PORT',
      'NATS_URL',
      'SPIFFE_ENDPOINT_SOCKET',
    ]);
    expect(issues).toContain('CHANCERY_COLOUR: unknown setting');
    expect(issues).toContain('NATS_URL: required');
  });

  it('never repeats a value', () => {
    const env = { ...required, DATABASE_URL: 'mysql://user:hunter2@host/db' };
    const issues = issuesOf(() => loadConfig(z.object({ ...commonSettings, ...databaseSettings }), env));
    expect(issues).toEqual(['DATABASE_URL: expected postgres://']);
  });

  it('counts empty text as absent and ignores names of others', () => {
    const config = loadConfig(z.object(commonSettings), { ...required, CHANCERY_OPS_PORT: '', PATH: '/bin' });
    expect(config.CHANCERY_OPS_PORT).toBe(9090);
    expect(config).not.toHaveProperty('PATH');
  });
});

describe('settings', () => {
  it.each([
    ['tenant:7443', { host: 'tenant', port: 7443 }],
    ['127.0.0.1:1', { host: '127.0.0.1', port: 1 }],
    ['[::1]:65535', { host: '::1', port: 65_535 }],
  ])('endpoint reads %s', (text, expected) => {
    expect(endpoint.parse(text)).toEqual(expected);
  });

  it.each(['tenant', 'tenant:0', 'tenant:65536', ':80', 'http://tenant:80', '::1:80', 'a b:80'])(
    'endpoint refuses %s',
    (text) => {
      expect(endpoint.safeParse(text).success).toBe(false);
    },
  );

  it('port takes 0 to 65535', () => {
    expect([port.parse('0'), port.parse('65535')]).toEqual([0, 65_535]);
    expect(['-1', '65536', '1.5', 'x'].map((text) => port.safeParse(text).success)).toEqual([
      false,
      false,
      false,
      false,
    ]);
  });

  it('flag accepts words for true and false only', () => {
    expect([flag.parse('true'), flag.parse('0')]).toEqual([true, false]);
    expect(flag.safeParse('maybe').success).toBe(false);
  });
});

describe('Secret', () => {
  it('is read from a file, as exact bytes and as text without the line end', () => {
    const secret = secretFile.parse(secretAt('s3cret\n'));
    expect(secret.reveal().toString()).toBe('s3cret\n');
    expect(secret.text()).toBe('s3cret');
  });

  it('is redacted in every form of output', () => {
    const secret = new Secret('hunter2');
    const shown = [
      `${secret}`,
      JSON.stringify({ secret }),
      inspect({ secret }),
      String(Object.values(secret)),
    ];
    expect(shown.join(' ')).not.toContain('hunter2');
    expect(JSON.stringify({ secret })).toBe('{"secret":"[redacted]"}');
  });

  it('cannot be changed through the bytes that it revealed', () => {
    const secret = new Secret('abc');
    secret.reveal().fill(0);
    expect(secret.text()).toBe('abc');
  });

  it('is a fault when its file is missing or empty, without repeating the path', () => {
    const schema = z.object({ CHANCERY_KEY_FILE: secretFile });
    const missing = issuesOf(() => loadConfig(schema, { CHANCERY_KEY_FILE: '/nowhere/key' }));
    const empty = issuesOf(() => loadConfig(schema, { CHANCERY_KEY_FILE: secretAt('') }));
    expect(missing).toEqual(['CHANCERY_KEY_FILE: the secret file cannot be read (ENOENT)']);
    expect(empty).toEqual(['CHANCERY_KEY_FILE: the secret file is empty']);
  });
});

describe('describeSettings', () => {
  it('gives name, meaning, need and default of each setting', () => {
    const rows = describeSettings(
      z.object({ ...commonSettings, CHANCERY_KEY_FILE: secretFile.describe('Key.') }),
    );
    expect(rows.find((row) => row.name === 'CHANCERY_OPS_PORT')).toMatchObject({
      required: false,
      defaultValue: '9090',
    });
    expect(rows.at(-1)).toEqual({
      name: 'CHANCERY_KEY_FILE',
      description: 'Key.',
      required: true,
      defaultValue: undefined,
    });
    expect(rows.every((row) => row.description !== '')).toBe(true);
  });
});
