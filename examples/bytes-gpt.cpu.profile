dpgen-profile 2
device Intel(R) Xeon(R) Processor, family 6, model 207, stepping 2
compiler gcc 12.2.0
kernels portable
isa native
compute f32
threads 1
stages 2
transport local
runtime 8a6394ff7b218bc7
batches 1 2 4
compute batch=2 alone=33802349 alone_iqr=463724 busy=42392590 busy_iqr=33267707
copy-in bytes=1048576 alone=38518 alone_iqr=2368 busy=38440 busy_iqr=184
copy-in bytes=16777216 alone=1324348 alone_iqr=36367 busy=1314611 busy_iqr=18938
copy-in bytes=65536 alone=1597 alone_iqr=22 busy=1595 busy_iqr=28
copy-out bytes=1048576 alone=38169 alone_iqr=1057 busy=38141 busy_iqr=1609
copy-out bytes=16777216 alone=1356555 alone_iqr=20512 busy=1319103 busy_iqr=12632
copy-out bytes=65536 alone=1571 alone_iqr=41 busy=1575 busy_iqr=22
message bytes=1048576 alone=235499 alone_iqr=89331 busy=158890 busy_iqr=101054
message bytes=16777216 alone=1929298 alone_iqr=725263 busy=1597304 busy_iqr=133448
message bytes=4 alone=545 alone_iqr=6 busy=538 busy_iqr=25
message bytes=4096 alone=1512 alone_iqr=23 busy=1453 busy_iqr=68
message bytes=65536 alone=10519 alone_iqr=358 busy=10262 busy_iqr=313
op adamw_update c=0 n=150528 beta1=0x1.ccccccccccccdp-1 beta2=0x1.e666666666666p-1 eps=0x1.5798ee2308c3ap-27 decay=1 alone=110376 alone_iqr=3319 busy=104006 busy_iqr=6303
op adamw_update c=0 n=200704 beta1=0x1.ccccccccccccdp-1 beta2=0x1.e666666666666p-1 eps=0x1.5798ee2308c3ap-27 decay=1 alone=150940 alone_iqr=8473 busy=137009 busy_iqr=10664
op adamw_update c=0 n=224 beta1=0x1.ccccccccccccdp-1 beta2=0x1.e666666666666p-1 eps=0x1.5798ee2308c3ap-27 decay=0 alone=170 alone_iqr=6 busy=173 busy_iqr=6
op adamw_update c=0 n=28672 beta1=0x1.ccccccccccccdp-1 beta2=0x1.e666666666666p-1 eps=0x1.5798ee2308c3ap-27 decay=1 alone=20792 alone_iqr=877 busy=20120 busy_iqr=773
op adamw_update c=0 n=50176 beta1=0x1.ccccccccccccdp-1 beta2=0x1.e666666666666p-1 eps=0x1.5798ee2308c3ap-27 decay=1 alone=36705 alone_iqr=940 busy=35095 busy_iqr=2519
op adamw_update c=0 n=57344 beta1=0x1.ccccccccccccdp-1 beta2=0x1.e666666666666p-1 eps=0x1.5798ee2308c3ap-27 decay=1 alone=59292 alone_iqr=6899 busy=65647 busy_iqr=3688
op adamw_update c=0 n=672 beta1=0x1.ccccccccccccdp-1 beta2=0x1.e666666666666p-1 eps=0x1.5798ee2308c3ap-27 decay=0 alone=503 alone_iqr=20 busy=489 busy_iqr=34
op adamw_update c=0 n=896 beta1=0x1.ccccccccccccdp-1 beta2=0x1.e666666666666p-1 eps=0x1.5798ee2308c3ap-27 decay=0 alone=711 alone_iqr=7 busy=656 busy_iqr=41
op add_forward n=114688 alone=52989 alone_iqr=1077 busy=57739 busy_iqr=2063
op add_forward n=28672 alone=13028 alone_iqr=437 busy=13886 busy_iqr=570
op add_forward n=57344 alone=27692 alone_iqr=598 busy=28268 busy_iqr=665
op attention_packed_backward dbias=0 bias=0 mask=0 batch=1 heads=7 query=128 width=32 causal=1 scale=0x1.6a09e667f3bccp-3 drop=0x0p+0 alone=335723 alone_iqr=10688 busy=345051 busy_iqr=16293
op attention_packed_backward dbias=0 bias=0 mask=0 batch=2 heads=7 query=128 width=32 causal=1 scale=0x1.6a09e667f3bccp-3 drop=0x0p+0 alone=674177 alone_iqr=17647 busy=691788 busy_iqr=31265
op attention_packed_backward dbias=0 bias=0 mask=0 batch=4 heads=7 query=128 width=32 causal=1 scale=0x1.6a09e667f3bccp-3 drop=0x0p+0 alone=1382768 alone_iqr=28590 busy=1350933 busy_iqr=47993
op attention_packed_forward bias=0 mask=0 batch=1 heads=7 query=128 width=32 causal=1 scale=0x1.6a09e667f3bccp-3 drop=0x0p+0 alone=287738 alone_iqr=15778 busy=292435 busy_iqr=13315
op attention_packed_forward bias=0 mask=0 batch=2 heads=7 query=128 width=32 causal=1 scale=0x1.6a09e667f3bccp-3 drop=0x0p+0 alone=611543 alone_iqr=11039 busy=585588 busy_iqr=6885
op attention_packed_forward bias=0 mask=0 batch=4 heads=7 query=128 width=32 causal=1 scale=0x1.6a09e667f3bccp-3 drop=0x0p+0 alone=1173471 alone_iqr=22265 busy=1172819 busy_iqr=20459
op embedding_backward n=128 width=224 rows=256 alone=8516 alone_iqr=274 busy=9248 busy_iqr=364
op embedding_backward n=256 width=224 rows=256 alone=15385 alone_iqr=381 busy=16514 busy_iqr=368
op embedding_backward n=512 width=224 rows=256 alone=28395 alone_iqr=494 busy=28274 busy_iqr=1263
op embedding_forward n=128 width=224 rows=256 alone=9983 alone_iqr=4831 busy=11397 busy_iqr=3402
op embedding_forward n=256 width=224 rows=256 alone=17597 alone_iqr=1421 busy=19230 busy_iqr=6630
op embedding_forward n=512 width=224 rows=256 alone=29566 alone_iqr=2133 busy=34049 busy_iqr=3886
op gelu_backward n=114688 tanh=1 alone=104461 alone_iqr=2673 busy=111850 busy_iqr=4417
op gelu_backward n=229376 tanh=1 alone=196454 alone_iqr=7256 busy=207412 busy_iqr=6182
op gelu_backward n=458752 tanh=1 alone=426733 alone_iqr=12397 busy=444681 busy_iqr=17352
op gelu_forward n=114688 tanh=1 alone=70187 alone_iqr=196 busy=70414 busy_iqr=228
op gelu_forward n=229376 tanh=1 alone=138879 alone_iqr=5666 busy=140677 busy_iqr=6628
op gelu_forward n=458752 tanh=1 alone=278201 alone_iqr=12100 busy=281674 busy_iqr=18226
op grad_add n=114688 alone=55018 alone_iqr=1577 busy=55086 busy_iqr=1080
op grad_add n=28672 alone=13262 alone_iqr=319 busy=14218 busy_iqr=206
op grad_add n=57344 alone=26480 alone_iqr=277 busy=28783 busy_iqr=787
op layernorm_backward onto=1 rows=128 width=224 alone=20944 alone_iqr=760 busy=22279 busy_iqr=1101
op layernorm_backward onto=1 rows=256 width=224 alone=40425 alone_iqr=1808 busy=42964 busy_iqr=1574
op layernorm_backward onto=1 rows=512 width=224 alone=80458 alone_iqr=3755 busy=83449 busy_iqr=4423
op layernorm_backward rows=128 width=224 alone=16200 alone_iqr=666 busy=16777 busy_iqr=472
op layernorm_backward rows=256 width=224 alone=32378 alone_iqr=2091 busy=34390 busy_iqr=1284
op layernorm_backward rows=512 width=224 alone=67865 alone_iqr=2311 busy=71132 busy_iqr=5233
op layernorm_forward rows=128 width=224 eps=0x1.4f8b588e368f1p-17 alone=9660 alone_iqr=323 busy=10014 busy_iqr=488
op layernorm_forward rows=256 width=224 eps=0x1.4f8b588e368f1p-17 alone=21381 alone_iqr=973 busy=20753 busy_iqr=917
op layernorm_forward rows=512 width=224 eps=0x1.4f8b588e368f1p-17 alone=38712 alone_iqr=1358 busy=41698 busy_iqr=1709
op linear_backward_w dbias=0 rows=128 in=224 out=256 alone=110982 alone_iqr=6714 busy=112187 busy_iqr=3353
op linear_backward_w dbias=0 rows=256 in=224 out=256 alone=215146 alone_iqr=4392 busy=215566 busy_iqr=10460
op linear_backward_w dbias=0 rows=512 in=224 out=256 alone=426472 alone_iqr=8535 busy=429187 busy_iqr=10282
op linear_backward_w rows=128 in=224 out=224 alone=94521 alone_iqr=3433 busy=97131 busy_iqr=798
op linear_backward_w rows=128 in=224 out=672 alone=271190 alone_iqr=5298 busy=278496 busy_iqr=19184
op linear_backward_w rows=128 in=224 out=896 alone=355772 alone_iqr=7822 busy=367383 busy_iqr=18655
op linear_backward_w rows=128 in=896 out=224 alone=392171 alone_iqr=2456 busy=419919 busy_iqr=23980
op linear_backward_w rows=256 in=224 out=224 alone=192652 alone_iqr=5744 busy=192815 busy_iqr=6509
op linear_backward_w rows=256 in=224 out=672 alone=540716 alone_iqr=22831 busy=552372 busy_iqr=18462
op linear_backward_w rows=256 in=224 out=896 alone=710604 alone_iqr=14870 busy=744755 busy_iqr=33497
op linear_backward_w rows=256 in=896 out=224 alone=751792 alone_iqr=31103 busy=777016 busy_iqr=30151
op linear_backward_w rows=512 in=224 out=224 alone=376238 alone_iqr=14839 busy=369071 busy_iqr=25059
op linear_backward_w rows=512 in=224 out=672 alone=1129499 alone_iqr=33080 busy=1116599 busy_iqr=35553
op linear_backward_w rows=512 in=224 out=896 alone=1512160 alone_iqr=45298 busy=1500786 busy_iqr=21440
op linear_backward_w rows=512 in=896 out=224 alone=1510239 alone_iqr=10297 busy=1530939 busy_iqr=61807
op linear_backward_x rows=128 in=224 out=224 alone=92379 alone_iqr=2653 busy=94969 busy_iqr=3739
op linear_backward_x rows=128 in=224 out=256 alone=107136 alone_iqr=3650 busy=106711 busy_iqr=5063
op linear_backward_x rows=128 in=224 out=672 alone=273696 alone_iqr=18661 busy=279203 busy_iqr=11877
op linear_backward_x rows=128 in=224 out=896 alone=358927 alone_iqr=19877 busy=367401 busy_iqr=16522
op linear_backward_x rows=128 in=896 out=224 alone=387503 alone_iqr=16183 busy=389236 busy_iqr=24647
op linear_backward_x rows=256 in=224 out=224 alone=171055 alone_iqr=6713 busy=177718 busy_iqr=8922
op linear_backward_x rows=256 in=224 out=256 alone=192348 alone_iqr=5490 busy=196201 busy_iqr=6817
op linear_backward_x rows=256 in=224 out=672 alone=514896 alone_iqr=14995 busy=517312 busy_iqr=19042
op linear_backward_x rows=256 in=224 out=896 alone=666142 alone_iqr=12982 busy=677407 busy_iqr=16892
op linear_backward_x rows=256 in=896 out=224 alone=690058 alone_iqr=18100 busy=716541 busy_iqr=9974
op linear_backward_x rows=512 in=224 out=224 alone=329041 alone_iqr=13801 busy=325398 busy_iqr=21210
op linear_backward_x rows=512 in=224 out=256 alone=375554 alone_iqr=16169 busy=366954 busy_iqr=19670
op linear_backward_x rows=512 in=224 out=672 alone=994003 alone_iqr=14987 busy=982320 busy_iqr=28225
op linear_backward_x rows=512 in=224 out=896 alone=1300890 alone_iqr=12002 busy=1317161 busy_iqr=29855
op linear_backward_x rows=512 in=896 out=224 alone=1368187 alone_iqr=27004 busy=1359947 busy_iqr=22110
op linear_forward bias=0 rows=128 in=224 out=256 alone=105113 alone_iqr=3052 busy=105882 busy_iqr=3673
op linear_forward bias=0 rows=256 in=224 out=256 alone=196685 alone_iqr=5607 busy=201986 busy_iqr=7890
op linear_forward bias=0 rows=512 in=224 out=256 alone=368661 alone_iqr=26093 busy=374996 busy_iqr=20314
op linear_forward rows=128 in=224 out=224 alone=95005 alone_iqr=5383 busy=95919 busy_iqr=1131
op linear_forward rows=128 in=224 out=672 alone=280408 alone_iqr=9059 busy=284034 busy_iqr=12761
op linear_forward rows=128 in=224 out=896 alone=376857 alone_iqr=11222 busy=382693 busy_iqr=15613
op linear_forward rows=128 in=896 out=224 alone=359562 alone_iqr=15447 busy=363367 busy_iqr=13292
op linear_forward rows=256 in=224 out=224 alone=179402 alone_iqr=4840 busy=176734 busy_iqr=7393
op linear_forward rows=256 in=224 out=672 alone=543748 alone_iqr=8403 busy=533549 busy_iqr=21645
op linear_forward rows=256 in=224 out=896 alone=702759 alone_iqr=6564 busy=719880 busy_iqr=44134
op linear_forward rows=256 in=896 out=224 alone=681911 alone_iqr=14394 busy=680336 busy_iqr=10194
op linear_forward rows=512 in=224 out=224 alone=322715 alone_iqr=10037 busy=325532 busy_iqr=16347
op linear_forward rows=512 in=224 out=672 alone=1004743 alone_iqr=7647 busy=1012654 busy_iqr=23630
op linear_forward rows=512 in=224 out=896 alone=1380993 alone_iqr=53357 busy=1396740 busy_iqr=22443
op linear_forward rows=512 in=896 out=224 alone=1317010 alone_iqr=6739 busy=1328986 busy_iqr=21125
op loss_report alone=7 alone_iqr=0 busy=7 busy_iqr=0
op loss_seed alone=7 alone_iqr=0 busy=8 busy_iqr=1
op norm_partial n=150528 alone=27126 alone_iqr=1186 busy=31802 busy_iqr=3976
op norm_partial n=200704 alone=34371 alone_iqr=1406 busy=37705 busy_iqr=1944
op norm_partial n=224 alone=180 alone_iqr=1 busy=177 busy_iqr=10
op norm_partial n=28672 alone=6733 alone_iqr=1221 busy=8316 busy_iqr=2389
op norm_partial n=50176 alone=9470 alone_iqr=371 busy=10354 busy_iqr=365
op norm_partial n=57344 alone=24975 alone_iqr=1477 busy=27519 busy_iqr=1001
op norm_partial n=672 alone=478 alone_iqr=34 busy=482 busy_iqr=58
op norm_partial n=896 alone=662 alone_iqr=37 busy=643 busy_iqr=56
op norm_total count=53 limit=0x1p+0 alone=27 alone_iqr=1 busy=25 busy_iqr=1
op position_backward batch=1 seq=128 width=224 rows=128 alone=9035 alone_iqr=329 busy=9829 busy_iqr=286
op position_backward batch=2 seq=128 width=224 rows=128 alone=13906 alone_iqr=1254 busy=14892 busy_iqr=1438
op position_backward batch=4 seq=128 width=224 rows=128 alone=23815 alone_iqr=1502 busy=24122 busy_iqr=1423
op position_forward batch=1 seq=128 width=224 alone=12692 alone_iqr=314 busy=13774 busy_iqr=452
op position_forward batch=2 seq=128 width=224 alone=23465 alone_iqr=787 busy=23918 busy_iqr=598
op position_forward batch=4 seq=128 width=224 alone=39912 alone_iqr=150 busy=43481 busy_iqr=1910
op xent_backward rows=128 width=256 ignore=-100 count=0 alone=15566 alone_iqr=370 busy=15788 busy_iqr=58
op xent_backward rows=256 width=256 ignore=-100 count=0 alone=32876 alone_iqr=1712 busy=32353 busy_iqr=1471
op xent_backward rows=512 width=256 ignore=-100 count=0 alone=64247 alone_iqr=505 busy=64632 busy_iqr=3864
op xent_forward rows=128 width=256 ignore=-100 count=0 alone=37820 alone_iqr=1381 busy=37868 busy_iqr=2167
op xent_forward rows=256 width=256 ignore=-100 count=0 alone=80432 alone_iqr=3365 busy=79142 busy_iqr=7288
op xent_forward rows=512 width=256 ignore=-100 count=0 alone=164260 alone_iqr=4552 busy=157012 busy_iqr=7382
