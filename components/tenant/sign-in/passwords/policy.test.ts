import { describe, expect, it } from 'vitest';
import { createPasswordPolicy } from './policy.ts';

const policy = createPasswordPolicy(12);
const judge = (password: string, ...words: string[]) => policy.judge(password, { words });

describe('password policy', () => {
  it.each([
    'correct horse battery staple',
    'x8#Kq2!vLm0p',
    'Zwölf Boxkämpfer jagen Viktor',
    '鍵は静かな森の奥で眠っています',
    'dragon!9381-2837-kestrel',
    'aB3$ '.repeat(51),
  ])('accepts %s', (password) => {
    expect(judge(password, 'maria.schmidt', 'Maria Schmidt', 'Acme', 'acme')).toEqual([]);
  });

  it.each([
    'password1234',
    'PASSWORD!!!!',
    'P@ssw0rd2024',
    'passwordpassword',
    '!!!Welcome2024',
    'qwertyuiopas',
    '123456789012',
    'aaaaaaaaaaaaaaa',
    'abcabcabcabc',
    'abcdefghijklmnop',
    '1q2w3e4r5t6y',
    'letmein123456',
    'trustno1trustno1',
    'zyxwvutsrqpo',
  ])('refuses the well-known %s', (password) => {
    expect(judge(password)).toContain('breached');
  });

  it.each([
    ['maria.schmidt1', 'maria.schmidt'],
    ['MariaSchmidt!!', 'Maria Schmidt'],
    ['acmeworks-2024', 'Acme Works'],
    ['Chancery2024!', 'nothing'],
    ['pl4tform-2026', 'nothing'],
  ])('refuses %s for an account that is known by %s', (password, word) => {
    expect(judge(password, word)).toContain('contextual');
  });

  it('counts code points after NFC, and checks the whole of a long password', () => {
    expect(judge('kj3 vq9 zx7')).toEqual(['too_short']);
    expect(judge('🜁🜂🜃🜄🜅🜆🜇🜈🜉🜊🜋')).toEqual(['too_short']);
    expect(judge('🜁🜂🜃🜄🜅🜆🜇🜈🜉🜊🜋🜌')).toEqual([]);
    expect(judge('aB3$ '.repeat(52))).toEqual(['too_long']);
  });
});
