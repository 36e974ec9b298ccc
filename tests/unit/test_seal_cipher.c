/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Known answers: what each library makes of the test vectors of the standards, whole and in parts.
 */
#include "seal_libraries.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VECTOR_MAX 256

typedef struct aead_vector {
    const char *from;
    uci_seal_cipher_t cipher;
    const char *key, *nonce, *aad, *plain, *sealed, *tag;
} aead_vector_t;

#define GCM_NONCE "cafebabefacedbaddecaf888"
#define GCM_AAD   "feedfacedeadbeeffeedfacedeadbeefabaddad2"
#define GCM_PLAIN \
    "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39"

static const aead_vector_t aead_vectors[] = {
        {"GCM's specification, test case 1", UCI_SEAL_AES128, "00000000000000000000000000000000",
         "000000000000000000000000", "", "", "", "58e2fccefa7e3061367f1d57a4e7455a"},
        {"GCM's specification, test case 4", UCI_SEAL_AES128, "feffe9928665731c6d6a8f9467308308", GCM_NONCE, GCM_AAD,
         GCM_PLAIN,
         "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58"
         "e091",
         "5bc94fbc3221a5db94fae95ae7121a47"},
        {"GCM's specification, test case 13", UCI_SEAL_AES256,
         "0000000000000000000000000000000000000000000000000000000000000000", "000000000000000000000000", "", "", "",
         "530f8afbc74536b9a963b4f1c4cb738b"},
        {"GCM's specification, test case 16", UCI_SEAL_AES256,
         "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308", GCM_NONCE, GCM_AAD, GCM_PLAIN,
         "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9"
         "f662",
         "76fc6ece0f4e1768cddf8853bb2d551b"},
        {"NIST CAVP gcmEncryptExtIV128, nothing but AAD", UCI_SEAL_AES128, "77be63708971c4e240d1cb79e8d77feb",
         "e0e00f19fed7ba0136a797f3", "7a43ec1d9c0a5a78a0b16533a6213cab", "", "", "209fcc8d3675ed938e9c7166709dd946"},
        {"NIST CAVP gcmEncryptExtIV256, nothing but AAD", UCI_SEAL_AES256,
         "78dc4e0aaf52d935c3c01eea57428f00ca1fd475f5da86a49c8dd73d68c8e223", "d79cf22d504cc793c3fb6c8a",
         "b96baa8c1c75a671bfb2d08d06be5f36", "", "", "3e5d486aa2e30b22e040b85723a06e76"},
        {"RFC 8439, section 2.8.2", UCI_SEAL_CHACHA20,
         "808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f", "070000004041424344454647",
         "50515253c0c1c2c3c4c5c6c7",
         "4c616469657320616e642047656e746c656d656e206f662074686520636c617373206f66202739393a204966204920636f756c64206f66666572"
         "20796f75206f6e6c79206f6e652074697020666f7220746865206675747572652c2073756e73637265656e20776f756c642062652069742e",
         "d31a8d34648e60db7b86afbc53ef7ec2a4aded51296e08fea9e2b5a736ee62d63dbea45e8ca9671282fafb69da92728b1a71de0a9e060b2905d6"
         "a5b67ecd3b3692ddbd7f2d778b8c9803aee328091b58fab324e4fad675945585808b4831d7bc3ff4def08e4b7a9de576d26586cec64b6116",
         "1ae10b594f09e26a7e902ecbd0600691"},
};

static size_t from_hex(const char *text, uint8_t *bytes)
{
    size_t i, length = strlen(text) / 2;
    unsigned byte;

    cr_assert(length <= VECTOR_MAX);
    for (i = 0; i < length; ++i) {
        cr_assert_eq(sscanf(text + 2 * i, "%2x", &byte), 1);
        bytes[i] = (uint8_t)byte;
    }
    return length;
}

static void expect_hex(const uint8_t *bytes, size_t length, const char *expected, const char *what)
{
    char text[2 * VECTOR_MAX + 1] = "";
    size_t i;

    for (i = 0; i < length; ++i) {
        sprintf(text + 2 * i, "%02x", bytes[i]);
    }
    cr_expect_str_eq(text, expected, "%s: %s instead of %s", what, text, expected);
}

/* Cut into parts of @a piece bytes */
static bool run(const uci_seal_library_ops_t *ops, void *key, uci_seal_way_t way, const uint8_t *nonce,
                const uint8_t *aad, size_t aad_length, uint8_t *dst, const uint8_t *src, size_t length, size_t piece,
                uint8_t *tag)
{
    size_t done, part;

    cr_assert(ops->start(key, way, nonce, aad, aad_length));
    for (done = 0; done < length; done += part) {
        part = (length - done < piece) ? length - done : piece;
        cr_assert(ops->part(key, way, (dst != NULL) ? dst + done : NULL, src + done, part));
    }
    return ops->finish(key, way, tag);
}

static void check_vector(const uci_seal_library_ops_t *ops, const aead_vector_t *vector, size_t piece)
{
    uint8_t key[32], nonce[12], aad[VECTOR_MAX], plain[VECTOR_MAX], sealed[VECTOR_MAX], out[VECTOR_MAX], tag[16];
    size_t aad_length = from_hex(vector->aad, aad), length = from_hex(vector->plain, plain);
    void *made;

    from_hex(vector->key, key);
    from_hex(vector->nonce, nonce);
    from_hex(vector->sealed, sealed);
    made = ops->key_create(vector->cipher, key);
    cr_assert_not_null(made);

    cr_expect(run(ops, made, UCI_SEAL_WAY_ENCRYPT, nonce, aad, aad_length, out, plain, length, piece, tag));
    expect_hex(out, length, vector->sealed, vector->from);
    expect_hex(tag, sizeof(tag), vector->tag, vector->from);
    cr_expect(run(ops, made, UCI_SEAL_WAY_DECRYPT, nonce, aad, aad_length, out, sealed, length, piece, tag));
    expect_hex(out, length, vector->plain, vector->from);
    tag[15] ^= 1;
    cr_expect_not(run(ops, made, UCI_SEAL_WAY_DECRYPT, nonce, aad, aad_length, out, sealed, length, piece, tag));

    if (length == 0) { /* the same by signing alone, the second half of the AAD as a part */
        cr_expect(run(ops, made, UCI_SEAL_WAY_SIGN, nonce, aad, aad_length / 2, NULL, aad + aad_length / 2,
                      aad_length - aad_length / 2, piece, tag));
        expect_hex(tag, sizeof(tag), vector->tag, vector->from);
        cr_expect(run(ops, made, UCI_SEAL_WAY_VERIFY, nonce, aad, aad_length / 2, NULL, aad + aad_length / 2,
                      aad_length - aad_length / 2, piece, tag));
        tag[0] ^= 0x80;
        cr_expect_not(run(ops, made, UCI_SEAL_WAY_VERIFY, nonce, aad, aad_length / 2, NULL, aad + aad_length / 2,
                          aad_length - aad_length / 2, piece, tag));
    }
    ops->key_destroy(made);
}

Test(seal_cipher, known_answers)
{
    static const size_t pieces[] = {1, 7, 16, 33, VECTOR_MAX};
    int library, cipher;
    size_t i, j;

    seal_for_each(library, cipher)
    {
        for (i = 0; i < uci_array_size(aead_vectors); ++i) {
            for (j = 0; (aead_vectors[i].cipher == (uci_seal_cipher_t)cipher) && (j < uci_array_size(pieces)); ++j) {
                check_vector(uci_seal_library_open((uci_seal_lib_t)library, NULL), &aead_vectors[i], pieces[j]);
            }
        }
    }
}

/* One library opens what the other has sealed, of any length and cut: random ones beside the standards' few */
Test(seal_cipher, libraries_agree)
{
    enum { LENGTH = 70000, ROUNDS = 200 };
    uint8_t key[32], nonce[12] = {0}, tag[16], *plain = malloc(LENGTH), *sealed = malloc(LENGTH), *out = malloc(LENGTH);
    const uci_seal_library_ops_t *one = uci_seal_library_open(UCI_SEAL_OPENSSL, NULL), *other;
    uci_seal_way_t ways[2][2]         = {{UCI_SEAL_WAY_ENCRYPT, UCI_SEAL_WAY_DECRYPT},
                                         {UCI_SEAL_WAY_SIGN, UCI_SEAL_WAY_VERIFY}};
    void *one_key, *other_key;
    size_t length, way;
    int library, cipher, i;

    srand48(5);
    for (i = 0; i < LENGTH; ++i) {
        plain[i] = (uint8_t)lrand48();
    }
    for (i = 0; i < 32; ++i) {
        key[i] = (uint8_t)lrand48();
    }
    seal_for_each(library, cipher)
    {
        other     = uci_seal_library_open((uci_seal_lib_t)library, NULL);
        one_key   = one->key_create((uci_seal_cipher_t)cipher, key);
        other_key = other->key_create((uci_seal_cipher_t)cipher, key);
        for (i = 0; i < ROUNDS; ++i) {
            length   = (size_t)lrand48() % ((i % 4 == 0) ? LENGTH : 600);
            way      = (size_t)i % 2;
            nonce[3] = (uint8_t)i;
            memcpy(sealed, plain, length);
            cr_assert(run(other, other_key, ways[way][0], nonce, plain, 16, sealed, plain, length,
                          1 + (size_t)lrand48() % 9000, tag));
            memcpy(out, sealed, length);
            cr_expect(run(one, one_key, ways[way][1], nonce, plain, 16, out, sealed, length,
                          1 + (size_t)lrand48() % 9000, tag),
                      "%s, %s, length %zu", uci_seal_library_names[library], uci_seal_cipher_names[cipher], length);
            cr_expect_arr_eq(out, plain, length);
        }
        one->key_destroy(one_key);
        other->key_destroy(other_key);
    }
    free(plain);
    free(sealed);
    free(out);
}

Test(seal_cipher, hkdf)
{
    static const struct {
        const char *from, *ikm, *salt, *info, *okm;
    } vectors[] = {
            {"RFC 5869, A.1", "0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b", "000102030405060708090a0b0c",
             "f0f1f2f3f4f5f6f7f8f9",
             "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865"},
            {"RFC 5869, A.2",
             "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f303132333435"
             "363738393a3b3c3d3e3f404142434445464748494a4b4c4d4e4f",
             "606162636465666768696a6b6c6d6e6f707172737475767778797a7b7c7d7e7f808182838485868788898a8b8c8d8e8f909192939495"
             "969798999a9b9c9d9e9fa0a1a2a3a4a5a6a7a8a9aaabacadaeaf",
             "b0b1b2b3b4b5b6b7b8b9babbbcbdbebfc0c1c2c3c4c5c6c7c8c9cacbcccdcecfd0d1d2d3d4d5d6d7d8d9dadbdcdddedfe0e1e2e3e4e5"
             "e6e7e8e9eaebecedeeeff0f1f2f3f4f5f6f7f8f9fafbfcfdfeff",
             "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c59045a99cac7827271cb41c65e590e09da3275600c2f"
             "09b8367793a9aca3db71cc30c58179ec3e87c14c01d5c1f3434f1d87"},
            {"RFC 5869, A.3", "0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b", "", "",
             "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8"},
    };
    uint8_t ikm[VECTOR_MAX], salt[VECTOR_MAX], info[VECTOR_MAX], okm[VECTOR_MAX];
    size_t i, okm_length;

    cr_assert_not_null(uci_seal_library_open(UCI_SEAL_OPENSSL, NULL));
    for (i = 0; i < uci_array_size(vectors); ++i) {
        okm_length = strlen(vectors[i].okm) / 2;
        cr_expect(uci_seal_hkdf(ikm, from_hex(vectors[i].ikm, ikm), salt, from_hex(vectors[i].salt, salt), info,
                                from_hex(vectors[i].info, info), okm, okm_length));
        expect_hex(okm, okm_length, vectors[i].okm, vectors[i].from);
    }
}

Test(seal_cipher, hmac)
{
    uint8_t key[20], mac[32];

    cr_assert_not_null(uci_seal_library_open(UCI_SEAL_OPENSSL, NULL));
    memset(key, 0x0b, sizeof(key));
    cr_expect(uci_seal_hmac(key, sizeof(key), "Hi There", 8, NULL, 0, mac));
    expect_hex(mac, 32, "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7", "RFC 4231, 4.2");
    cr_expect(uci_seal_hmac("Jefe", 4, "what do ya want ", 16, "for nothing?", 12, mac));
    expect_hex(mac, 32, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843", "RFC 4231, 4.3");
}

Test(seal_cipher, choice)
{
    const uci_seal_library_ops_t *ops = NULL;
    uci_seal_cipher_t cipher          = uci_seal_cipher_choose(UCI_SEAL_CIPHER_AUTO);

    cr_expect((cipher == UCI_SEAL_AES128) || (cipher == UCI_SEAL_CHACHA20));
    cr_expect_eq(uci_seal_cipher_choose(UCI_SEAL_AES256), UCI_SEAL_AES256);
    cr_expect_eq(uci_seal_library_choose(UCI_SEAL_LIBRARY_AUTO, cipher, &ops), UCI_OK);
    cr_expect(ops->has(cipher));
    cr_expect_eq(uci_seal_library_choose(UCI_SEAL_OPENSSL, UCI_SEAL_AES256, &ops), UCI_OK);
    cr_expect_eq(ops->id, UCI_SEAL_OPENSSL);
    cr_expect_eq(uci_seal_library_choose(UCI_SEAL_LIBRARY_AUTO, UCI_SEAL_CHACHA20, &ops), UCI_OK);
    cr_expect_eq(ops->id, UCI_SEAL_OPENSSL);
    cr_expect_eq(uci_seal_library_choose(UCI_SEAL_IPSEC_MB, UCI_SEAL_CHACHA20, &ops), UCI_ERR_UNSUPPORTED);
}
