import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { askControl, serveControl } from './control.ts';
import {
  chooseValidators,
  keepInstallation,
  keepSecrets,
  keepValidators,
  openStateDirectory,
  writePrivate,
} from './directory.ts';
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

  test('keeps secrets: created once, private, never replaced', () => {
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

  test('fixes the number of validators at the first start', () => {
    const directory = openStateDirectory(root);
    expect(chooseValidators(directory, undefined)).toBe(1);
    expect(chooseValidators(directory, 4)).toBe(4);
    keepValidators(directory, 4);
    expect([chooseValidators(directory, undefined), chooseValidators(directory, 4)]).toEqual([4, 4]);
    expect(() => chooseValidators(directory, 3)).toThrow(/ has 4 validators since its first start; /);
  });

  test('counts one validator for a directory without a stored number', () => {
    const directory = openStateDirectory(root);
    mkdirSync(join(directory.validators, 'validator-0'));
    expect(chooseValidators(directory, undefined)).toBe(1);
    expect(() => chooseValidators(directory, 2)).toThrow(/ has 1 validator since its first start; /);
  });

  test('replaces a file atomically', () => {
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

describe('commands to a running Chancery', () => {
  let root = '';
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'chancery-control-'));
  });
  afterEach(() => rmSync(root, { recursive: true, force: true }));

  test('are answered with a line, or refused with the reason', async () => {
    const heard: string[] = [];
    const stop = await serveControl(root, async (line) => {
      heard.push(line);
      if (line === 'again gateway') throw new Error('gateway is no validator\nand more');
      return '42';
    });
    expect(await askControl(root, root, 'again validator-1')).toBe('42');
    await expect(askControl(root, root, 'again gateway')).rejects.toThrow(/^gateway is no validator$/);
    await expect(askControl(root, root, 'x'.repeat(300))).rejects.toThrow('the line is too long');
    expect(heard).toEqual(['again validator-1', 'again gateway']);
    await stop();
    await expect(askControl(root, root, 'again validator-1')).rejects.toThrow(`no Chancery runs on ${root}`);
  });

  test('fail with a code of their own when it ended before it answered', async () => {
    const begun = Promise.withResolvers<void>();
    const stop = await serveControl(root, () => {
      begun.resolve();
      return new Promise(() => undefined);
    });
    const asked = askControl(root, root, 'again validator-1');
    const refused = expect(asked).rejects.toMatchObject({ code: 'NOT_RUNNING' });
    await begun.promise;
    await stop();
    await refused;
  });
});

describe('free ports', () => {
  test('are different from each other', async () => {
    const ports = await freePorts(20);
    expect(new Set(ports).size).toBe(20);
    expect(ports.every((port) => port > 0)).toBe(true);
  });
});
