import {
  closeSync,
  existsSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  statSync,
  writeSync,
} from 'node:fs';
import { type Layer, sha256 } from './layer.ts';
import { encodeTar, firstFile, type TarEntry } from './tar.ts';

/** How a container of the image runs, as the OCI image specification names it. */
export interface ImageConfig {
  readonly entrypoint: readonly string[];
  readonly env: readonly string[];
  readonly user: string;
  readonly workingDirectory: string;
  readonly exposedPorts?: readonly string[];
  readonly volumes?: readonly string[];
  /** What a container is told to end with; SIGTERM otherwise. */
  readonly stopSignal?: string;
  readonly labels: Readonly<Record<string, string>>;
}

export interface Image {
  /** With host and tag: `chancery.local/tenant:0.1.0`. */
  readonly reference: string;
  readonly architecture: 'amd64' | 'arm64';
  readonly config: ImageConfig;
  /** From the bottom up. */
  readonly layers: readonly Layer[];
}

interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
}

interface Blob {
  readonly descriptor: Descriptor;
  readonly content: Buffer;
}

export interface WrittenArchive {
  /** Digest of the manifest: what identifies the image. */
  readonly digest: string;
  /** Compressed layers, configuration and manifest. */
  readonly sizeBytes: number;
}

const epoch = '1970-01-01T00:00:00Z';

function blob(mediaType: string, value: object): Blob {
  const content = Buffer.from(JSON.stringify(value));
  return {
    descriptor: { mediaType, digest: `sha256:${sha256(content)}`, size: content.byteLength },
    content,
  };
}

function configBlob({ config, architecture, layers }: Image): Blob {
  const named = (names: readonly string[] | undefined) =>
    names === undefined ? undefined : Object.fromEntries(names.map((name) => [name, {}]));
  return blob('application/vnd.oci.image.config.v1+json', {
    created: epoch,
    architecture,
    os: 'linux',
    config: {
      User: config.user,
      ExposedPorts: named(config.exposedPorts),
      Env: config.env,
      Entrypoint: config.entrypoint,
      Volumes: named(config.volumes),
      WorkingDir: config.workingDirectory,
      Labels: config.labels,
      StopSignal: config.stopSignal,
    },
    rootfs: { type: 'layers', diff_ids: layers.map((layer) => layer.diffId) },
  });
}

function layerDescriptor(layer: Layer): Descriptor {
  const mediaType = 'application/vnd.oci.image.layer.v1.tar+gzip';
  return { mediaType, digest: layer.digest, size: layer.sizeBytes };
}

function indexFile(reference: string, manifest: Descriptor): TarEntry {
  const tag = reference.slice(reference.lastIndexOf(':') + 1);
  const annotations = {
    'io.containerd.image.name': reference,
    'org.opencontainers.image.ref.name': tag,
  };
  const mediaType = 'application/vnd.oci.image.index.v1+json';
  const index = { schemaVersion: 2, mediaType, manifests: [{ ...manifest, annotations }] };
  return textFile('index.json', JSON.stringify(index));
}

function textFile(path: string, text: string): TarEntry {
  return { kind: 'file', path, content: Buffer.from(text), mode: 0o644 };
}

function blobFile(digest: string, content: Uint8Array): TarEntry {
  return { kind: 'file', path: `blobs/${digest.replace(':', '/')}`, content, mode: 0o644 };
}

/**
 * Writes an image as an OCI layout in a tar archive (OCI image specification 1.1). An archive at `path` that holds the
 * same image is left as it is: the index stands first and names everything else by digest.
 *
 * @param readLayer gives the compressed bytes of a layer
 */
export function writeArchive(
  path: string,
  image: Image,
  readLayer: (layer: Layer) => Buffer,
): WrittenArchive {
  const config = configBlob(image);
  const manifest = blob('application/vnd.oci.image.manifest.v1+json', {
    schemaVersion: 2,
    mediaType: 'application/vnd.oci.image.manifest.v1+json',
    config: config.descriptor,
    layers: image.layers.map(layerDescriptor),
  });
  const small = [
    indexFile(image.reference, manifest.descriptor),
    textFile('oci-layout', '{"imageLayoutVersion":"1.0.0"}'),
    blobFile(manifest.descriptor.digest, manifest.content),
    blobFile(config.descriptor.digest, config.content),
  ];
  if (!holds(path, small, image.layers)) {
    const large = image.layers.map((layer) => blobFile(layer.digest, readLayer(layer)));
    writeParts(path, encodeTar([...small, ...large]));
  }
  const blobs = [manifest.descriptor, config.descriptor, ...image.layers.map(layerDescriptor)];
  return {
    digest: manifest.descriptor.digest,
    sizeBytes: blobs.reduce((total, { size }) => total + size, 0),
  };
}

/**
 * Copies an archive that `writeArchive` wrote under another reference: the same image, as a registry serves it by a second
 * tag.
 */
export function copyArchive(from: string, to: string, reference: string): void {
  const archive = readFileSync(from);
  const { content, endBytes } = firstFile(archive);
  const { manifests } = JSON.parse(content.toString()) as { readonly manifests: readonly Descriptor[] };
  const [manifest] = manifests;
  if (manifest === undefined) throw new Error(`${from} names no image`);
  const { mediaType, digest, size } = manifest;
  const index = encodeTar([indexFile(reference, { mediaType, digest, size })]);
  writeParts(to, [...index.slice(0, -1), archive.subarray(endBytes)]);
}

/** Whether the archive begins with exactly these files and is as long as the layers make it. */
function holds(path: string, small: readonly TarEntry[], layers: readonly Layer[]): boolean {
  if (!existsSync(path)) return false;
  const ending = encodeTar([]).reduce((total, part) => total + part.byteLength, 0);
  const head = Buffer.concat(encodeTar(small)).subarray(0, -ending);
  const blocks = layers.reduce((total, layer) => total + 512 + Math.ceil(layer.sizeBytes / 512) * 512, 0);
  if (statSync(path).size !== head.byteLength + blocks + ending) return false;
  const file = openSync(path, 'r');
  try {
    const found = Buffer.alloc(head.byteLength);
    readSync(file, found, 0, found.byteLength, 0);
    return found.equals(head);
  } finally {
    closeSync(file);
  }
}

function writeParts(path: string, parts: readonly Uint8Array[]): void {
  const draft = `${path}.draft`;
  const file = openSync(draft, 'w');
  try {
    for (const part of parts) {
      for (let written = 0; written < part.byteLength; ) written += writeSync(file, part, written);
    }
  } finally {
    closeSync(file);
  }
  renameSync(draft, path);
}
