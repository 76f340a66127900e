#include "textflag.h"

// One step of 16 bytes: the mask of the bytes at off into the low half of reg.
// A byte that is not ASCII brings its high bit along by itself.
#define STEP(off, reg) \
	MOVOU    off(SI), X0 \
	MOVOA    X0, X1      \
	MOVOA    X0, X2      \
	PCMPEQB  X8, X1      \
	PCMPEQB  X9, X2      \
	POR      X1, X0      \
	POR      X2, X0      \
	PMOVMSKB X0, reg

// func indexBlocks(b, words []byte) int
TEXT ·indexBlocks(SB), NOSPLIT, $0-56
	MOVQ       b_base+0(FP), SI
	MOVQ       b_len+8(FP), CX
	MOVQ       words_base+24(FP), DI
	SHRQ       $6, CX
	MOVQ       CX, R12
	SHLQ       $3, R12
	MOVQ       R12, ret+48(FP)
	MOVQ       $0x2222222222222222, AX
	MOVQ       AX, X8
	PUNPCKLQDQ X8, X8
	MOVQ       $0x5c5c5c5c5c5c5c5c, AX
	MOVQ       AX, X9
	PUNPCKLQDQ X9, X9
	TESTQ      CX, CX
	JZ         done

loop:
	STEP(0, R8)
	STEP(16, R9)
	STEP(32, R10)
	STEP(48, R11)
	SHLQ $16, R9
	SHLQ $32, R10
	SHLQ $48, R11
	ORQ  R9, R8
	ORQ  R11, R10
	ORQ  R10, R8
	MOVQ R8, (DI)
	ADDQ $64, SI
	ADDQ $8, DI
	DECQ CX
	JNZ  loop

done:
	RET
