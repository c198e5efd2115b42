import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { keepInstallation, keepSecrets, openStateDirectory, writePrivate } from './directory.ts';
import { lockDirectory } from './lock.ts';
import { freePorts } from './ports.ts';

describe('the state directory', () => {
  let root = '';
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'chancery-state-'));
  });
  afterEach(() => {
    rmSync(openStateDirectory(root).sockets, { recursive: true, force: true });
    rmSync(root, { recursive: true, force: true });
  });

  test('is private, and its sockets have a short path', () => {
    const directory = openStateDirectory(join(root, 'a'.repeat(80)));
    expect(statSync(directory.secrets).mode & 0o777).toBe(0o700);
    expect(statSync(directory.sockets).mode & 0o777).toBe(0o700);
    expect(directory.sockets.length).toBeLessThan(60);
  });

  test('keeps secrets: made once, private, never replaced', () => {
    const directory = openStateDirectory(root);
    const files = keepSecrets(directory, ['service-a', 'service-b']);
    const password = readFileSync(files.adminPassword, 'utf8');
    expect(password).toHaveLength(24);
    expect(readFileSync(files.keyEncryptionKey)).toHaveLength(32);
    expect(statSync(files.adminPassword).mode & 0o777).toBe(0o600);
    keepSecrets(directory, ['service-a', 'service-c']);
    expect(readFileSync(files.adminPassword, 'utf8')).toBe(password);
  });

  test('keeps the name of its installation', () => {
    const directory = openStateDirectory(root);
    expect(keepInstallation(directory, 'first')).toBe('first');
    expect(keepInstallation(directory, 'second')).toBe('first');
  });

  test('replaces a file whole', () => {
    const path = join(root, 'file');
    writePrivate(path, 'one');
    writePrivate(path, 'two');
    expect(readFileSync(path, 'utf8')).toBe('two');
  });

  test('is held by one process at a time and free again afterwards', async () => {
    const { sockets } = openStateDirectory(root);
    const unlock = await lockDirectory(sockets, root);
    await expect(lockDirectory(sockets, root)).rejects.toThrow(/is in use by a running Chancery/);
    await unlock();
    await (await lockDirectory(sockets, root))();
  });
});

describe('free ports', () => {
  test('are different from each other', async () => {
    const ports = await freePorts(20);
    expect(new Set(ports).size).toBe(20);
    expect(ports.every((port) => port > 0)).toBe(true);
  });
});
