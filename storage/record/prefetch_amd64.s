#include "go_asm.h"
#include "textflag.h"

// func prefetch(first *byte, lines int)
TEXT ·prefetch(SB), NOSPLIT, $0-16
	MOVQ first+0(FP), AX
	MOVQ lines+8(FP), CX
	JMP  check
next:
	PREFETCHT0 (AX)
	ADDQ $const_lineBytes, AX
	DECQ CX
check:
	TESTQ CX, CX
	JG    next
	RET
