import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TarEntry } from '../oci/tar.ts';
import { type DebianPackage, packageField } from './debian.ts';
import { fileEntry, readTree } from './tree.ts';

/** The account of every image: a number that no system account has. */
export const account = { uid: 65_532, name: 'chancery', home: '/nonexistent' } as const;

/** Documentation but licences, manuals, translations, conversion tables, and programs of the packages' upkeep. */
const dropped = [
  /^usr\/share\/doc\/(?!.*\/copyright$)/,
  /^usr\/share\/(?:man|locale|lintian|bug|info|zsh|base-files|common-licenses|gcc|gdb)(?:\/|$)/,
  /\/gconv\//,
  /^(?:usr\/)?s?bin\//,
  /^etc\/(?:ca-certificates|debian_version|dpkg|issue|issue\.net|motd|update-motd\.d|profile\.d|ld\.so\.conf\.d)(?:\/|$)/,
  /^usr\/share\/ca-certificates\//,
  /^usr\/share\/zoneinfo\/(?:right|posix)\//,
];

const certificates = /^usr\/share\/ca-certificates\/.*\.crt$/;

/** What every image stands on: libraries, certificates, time zones, accounts, and a record of the packages. */
export function baseEntries(packages: readonly DebianPackage[]): TarEntry[] {
  const trees = packages.map((deb) => unpack(deb.file));
  const roots = trees.flat().filter(({ path }) => certificates.test(path));
  const pem = roots.map((entry) => (entry.kind === 'file' ? Buffer.from(entry.content) : Buffer.alloc(0)));
  return [
    ...trees.flat().filter(({ path }) => !dropped.some((pattern) => pattern.test(path))),
    ...packages.map(packageRecord),
    fileEntry('etc/ssl/certs/ca-certificates.crt', Buffer.concat(pem)),
    ...accountFiles(),
    { kind: 'directory', path: 'tmp', mode: 0o1777 },
    { kind: 'directory', path: 'run', mode: 0o755 },
  ];
}

/** The files of a package, and its record for those who look for known vulnerabilities. */
export function packageEntries(deb: DebianPackage, keep: (path: string) => boolean): TarEntry[] {
  return [...unpack(deb.file).filter(({ path }) => keep(path)), packageRecord(deb)];
}

function unpack(file: string): TarEntry[] {
  const folder = mkdtempSync(join(tmpdir(), 'chancery-deb-'));
  try {
    execFileSync('dpkg-deb', ['--extract', file, folder]);
    return readTree(folder, '').sort((a, b) => (a.path < b.path ? -1 : 1));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** As images without dpkg record what they hold. */
function packageRecord(deb: DebianPackage): TarEntry {
  const control = packageField(deb.file);
  const status = control.replace(/^(Package: .*)$/m, '$1\nStatus: install ok installed');
  return fileEntry(`var/lib/dpkg/status.d/${deb.name}`, `${status}\n`);
}

function accountFiles(): TarEntry[] {
  const { uid, name, home } = account;
  const passwd = `root:x:0:0:root:/root:/sbin/nologin\n${name}:x:${uid}:${uid}:${name}:${home}:/sbin/nologin\n`;
  return [
    fileEntry('etc/passwd', passwd),
    fileEntry('etc/group', `root:x:0:\n${name}:x:${uid}:\n`),
    fileEntry('etc/nsswitch.conf', 'passwd: files\ngroup: files\nhosts: files dns\n'),
  ];
}

/** Distinguishes one set of packages from another. */
export function packagesKey(packages: readonly DebianPackage[]): string {
  return packages.map((deb) => deb.sha256).join();
}
